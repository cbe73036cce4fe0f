// Reads CSV tables, with and without a label.
#include "framework/data/tables/csv.h"

#include <algorithm>
#include <cmath>

#include "tests/fuzz/fuzz_target.h"

namespace dtrain::fuzz {
namespace {

void CheckTable(const CsvTable& csv) {
  const Table& table = csv.table;
  const std::vector<double> numbers = InDouble(table.read().numbers);
  Require(static_cast<int64_t>(numbers.size()) == table.samples * table.sample_shape.count() &&
              static_cast<int64_t>(table.labels.numbers.size()) == table.samples,
          "numbers are missing");
  for (const auto* values : {&numbers, &table.labels.numbers}) {
    Require(std::ranges::all_of(*values, [](float x) { return std::isfinite(x); }),
            "a value is no number");
  }
  const auto words = static_cast<float>(table.labels.words.size());
  Require(words == 0 || std::ranges::all_of(table.labels.numbers,
                                            [words](float label) { return label < words; }),
          "a label is no class");
}

// The first byte chooses the separator, the header and the label's column.
bool Csv(std::string_view input) {
  InputReader in(input);
  const uint8_t choice = in.Byte();
  const auto path = WriteScratch("t.csv", in.Rest());
  CsvFormat format;
  format.separator = std::string_view("\0,;\t", 4)[choice & 3];
  format.header = static_cast<CsvFormat::Header>((choice >> 2) % 3);
  if ((choice & 16) != 0) format.label = (choice & 32) != 0 ? "1" : "a";
  return Accepts(ExitCode::kData, [&] {
    if ((choice & 64) == 0) return CheckTable(ReadCsv(path, format));
    const auto columns =
        (choice & 32) != 0 ? std::vector<std::string>{"b", "a"} : std::vector<std::string>();
    Require(ReadCsvNumbers(path, 2, columns).numbers.size() % 2 == 0, "numbers are missing");
  });
}

DTRAIN_FUZZ_TARGET("csv", Csv);

}  // namespace
}  // namespace dtrain::fuzz
