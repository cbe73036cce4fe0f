// Reads IDX files of images and of labels, plain and compressed.
#include "framework/data/images/idx.h"

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/gzip.h"

namespace dtrain::fuzz {
namespace {

constexpr int64_t kDigits = 10;

void ReadImages(const std::filesystem::path& path) {
  const IdxImages images = ReadIdxImages(path);
  // Without rows there may be any number of columns.
  const auto pixels = static_cast<unsigned __int128>(images.count) * images.rows * images.columns;
  Require(images.pixels.size() == pixels, "pixels are missing");
}

void ReadLabels(const std::filesystem::path& path) {
  for (const uint8_t label : ReadIdxLabels(path, kDigits)) {
    Require(label < kDigits, "a label is no class");
  }
}

// The first byte chooses between images and labels, and whether the rest is a plain file,
// compressed by the target, or compressed already.
bool Idx(std::string_view input) {
  InputReader in(input);
  const uint8_t choice = in.Byte();
  const auto read = (choice & 1) != 0 ? ReadLabels : ReadImages;
  const bool packed = (choice & 6) != 0;
  const std::string_view rest = in.Rest();
  const auto path =
      WriteScratch(packed ? "idx.gz" : "idx", (choice & 6) == 2 ? Gzipped(rest) : rest);
  return Accepts(ExitCode::kData, [&] { read(path); });
}

DTRAIN_FUZZ_TARGET("idx", Idx);

}  // namespace
}  // namespace dtrain::fuzz
