// Decodes JPEG and PNG files to bytes of one size and number of channels (libjpeg-turbo, libpng).
//
// The first bytes of a file decide its format, not its name.  Its values are taken as they are stored, without gamma
// and colour profiles, and equal PIL's (`convert("RGB")` or `convert("L")`), for a JPEG within 1:
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

// Fit is the way in which an image of another size is fitted to the wanted size.
enum class Fit {
  kNone,     // not at all: it must have that size
  kStretch,  // each side by itself; proportions may change
  // Scaled until it covers the size; both ends of the excess are cut off.
  kCrop,
};
inline constexpr const char* kFitNames[] = {"none", "stretch", "crop"};
std::string NameOf(Fit fit);
Fit FitOf(const std::string& name);  // DT_CHECKs that it is one

// Orientation is the treatment of an image that a camera stored rotated or mirrored, with an EXIF mark.
enum class Orientation {
  kIgnore,  // not turned
  kExif,    // turned upright before it is resized
};
inline constexpr const char* kOrientationNames[] = {"ignore", "exif"};
std::string NameOf(Orientation orientation);
Orientation OrientationOf(const std::string& name);  // DT_CHECKs that it is one

// Limit of a sample's pixels; a larger image counts as damaged.
inline constexpr int64_t kPixelsMost = int64_t{1} << 28;

struct ImageSize {
  int64_t rows = 0;
  int64_t columns = 0;
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

// True if the name ends in .jpg, .jpeg or .png, in any case.
bool IsImageName(const std::filesystem::path& path);

// True if the file begins as a JPEG or PNG does, whatever its name; false if it cannot be read.
bool IsImage(const std::filesystem::path& path);

// Returns the size of the turned image; reads only the header.
ImageSize ReadImageSize(const std::filesystem::path& path, Orientation orientation);

// Decodes `bytes` and writes [C, H, W] of `shape`, with C 1 or 3; returns true if the image was turned.  `name` is for
// messages.  An image that ends early, or is visibly damaged, is refused.  Resizing uses a triangle filter as wide as
// the scale (bilinear for enlarging); a JPEG that shrinks to half or less is first decoded at the next larger size that
// its format offers (N eighths), which is cheaper.
bool DecodeImage(std::string_view bytes, const std::string& name, const Shape& shape, Fit fit,
                 Orientation orientation, uint8_t* to);

}  // namespace dtrain
