// Pictures: JPEG and PNG files as bytes of one size and number of channels (libjpeg-turbo, libpng).
//
// A file is told by its first bytes, not by its name.  Its values are taken as they are stored, without gamma and
// colour profiles, and are those that PIL gives (`convert("RGB")` or `convert("L")`), of a JPEG within 1:
//   grey of colours     (19595 red + 38470 green + 7471 blue + 32768) >> 16
//   transparent pixels  are laid over white in bytes, as by PIL's Image.alpha_composite, before they become grey
//   16 bits             become 8 by round(v / 257), before transparency; PIL cuts off bits, or values above 255
//   orientation         EXIF's, in a JPEG's segment APP1 or a PNG's chunk eXIf, as by PIL's ImageOps.exif_transpose;
//                       a damaged EXIF block counts for none
// CMYK JPEGs are refused.  Every failure is a DataError that names the file.
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

// What is done about an image that a camera stored lying on its side, or mirrored, and marked so.
enum class Orientation {
  kIgnore,  // it stays as it is stored
  kExif,    // it is turned upright, before it comes to its size
};
inline constexpr const char* kOrientationNames[] = {"ignore", "exif"};
std::string NameOf(Orientation orientation);
Orientation OrientationOf(const std::string& name);  // DT_CHECKs that it is one

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

// From the header alone; of the turned image.
PictureSize ReadPictureSize(const std::filesystem::path& path, Orientation orientation);

// Decodes `bytes` and writes [C, H, W] of `shape`, C being 1 or 3; says whether it was turned.  `name` is for
// messages.  A picture that ends early, or is damaged as far as its format notices, is refused.  Sizes change by a
// triangle filter as wide as the change (bilinear where it grows); a JPEG that shrinks to half or less is decoded at
// the size of its own that is next above (N eighths), which costs less.
bool DecodePicture(std::string_view bytes, const std::string& name, const Shape& shape, Fit fit,
                   Orientation orientation, uint8_t* to);

}  // namespace dtrain
