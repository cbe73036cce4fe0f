// Reads NumPy's .npy files.
#include "framework/data/tables/npy.h"

#include <algorithm>
#include <cmath>

#include "tests/fuzz/fuzz_target.h"

namespace dtrain::fuzz {
namespace {

bool Npy(std::string_view input) {
  const auto path = WriteScratch("x.npy", input);
  return Accepts(ExitCode::kData, [&] {
    const NpyArray array = ReadNpy(path);
    const TableValues& values = array.values;
    Require(
        static_cast<int64_t>(values.bytes.size() + CountOf(values.numbers)) == array.shape.count(),
        "values are missing");
    Require(
        std::ranges::all_of(InDouble(values.numbers), [](double x) { return std::isfinite(x); }),
        "a value is no number");
    Require(ReadNpyHeader(path).shape == array.shape, "the header alone says something else");
  });
}

DTRAIN_FUZZ_TARGET("npy", Npy);

}  // namespace
}  // namespace dtrain::fuzz
