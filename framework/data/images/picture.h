// Pictures: JPEG and PNG files as bytes of one size and number of channels (libjpeg-turbo, libpng).
//
// A file is told by its first bytes, not by its name.  Colours become grey and grey becomes colours as the
// libraries do it; where a PNG is transparent it is white.  Every failure is a DataError that names the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "framework/device/shape.h"

namespace dtrain {

// How a picture comes to a size that is not its own.
enum class Fit {
  kNone,     // it must have it
  kStretch,  // both sides, whatever becomes of the proportions
  kCrop,  // both sides by one factor, until it covers the size; what sticks out is cut off on both ends
};
inline constexpr const char* kFitNames[] = {"none", "stretch", "crop"};
std::string NameOf(Fit fit);
Fit FitOf(const std::string& name);  // DT_CHECKs that it is one

// Of a sample; more is taken for damage.
inline constexpr int64_t kPixelsMost = int64_t{1} << 28;

struct PictureSize {
  int64_t rows = 0;
  int64_t columns = 0;
  friend bool operator==(const PictureSize&, const PictureSize&) = default;
};

// Whether its name ends as pictures' names do: .jpg, .jpeg or .png, in any case.
bool IsPictureName(const std::filesystem::path& path);

// Whether it begins as a JPEG or PNG does, whatever its name is; false where it cannot be read.
bool IsPicture(const std::filesystem::path& path);

// From the header alone.
PictureSize ReadPictureSize(const std::filesystem::path& path);

// Decodes `bytes` and writes [C, H, W] of `shape`, C being 1 or 3.  `name` is for messages.  A picture that ends
// early, or is damaged as far as its format notices, is refused.  Sizes change by a triangle filter as wide as
// the change (bilinear where it grows); a JPEG that shrinks to half or less is decoded at the size of its
// own that is next above (N eighths), which costs less.
void DecodePicture(std::string_view bytes, const std::string& name, const Shape& shape, Fit fit,
                   uint8_t* to);

}  // namespace dtrain
