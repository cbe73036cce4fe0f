// Decodes JPEG and PNG files to several shapes, and reads a checkpoint's description of its images.
#include "framework/data/images/image_file.h"

#include <vector>

#include "framework/data/images/image_set.h"
#include "tests/fuzz/fuzz_target.h"

namespace dtrain::fuzz {
namespace {

void Info(std::string_view text) {
  const ImageSetSpec spec = ImageSetSpecFromText(std::string(text), "info");
  const std::string written = ToText(spec);
  Require(ToText(ImageSetSpecFromText(written, "again")) == written,
          "the info changes when read again");
}

// The buffer has no spare room, so that a sanitizer detects a write past the last pixel.
void Decode(std::string_view file, const Shape& shape, Fit fit, Orientation orientation) {
  const auto count = static_cast<size_t>(shape.count());
  std::vector<uint8_t> image(count);
  DecodeImage(file, "image", shape, fit, orientation, image.data());
}

// The first byte chooses a description of images, or else the shape of an image, the way to fit it
// to that shape, and whether its orientation is applied.
bool Image(std::string_view input) {
  InputReader in(input);
  const uint8_t choice = in.Byte();
  const std::string_view rest = in.Rest();
  return Accepts(ExitCode::kData, [&] {
    if ((choice & 128) != 0) return Info(rest);
    const Shape shape = {(choice & 1) != 0 ? 3 : 1, (choice & 2) != 0 ? 5 : 8,
                         (choice & 4) != 0 ? 3 : 8};
    const auto orientation = (choice & 64) != 0 ? Orientation::kIgnore : Orientation::kExif;
    Decode(rest, shape, static_cast<Fit>((choice >> 3 & 7) % 3), orientation);
  });
}

DTRAIN_FUZZ_TARGET("image", Image);

}  // namespace
}  // namespace dtrain::fuzz
