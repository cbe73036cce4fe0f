// Holds decoded images as rows of bytes, converts them to grey and turns them.
//
// All arithmetic is on the bytes as they are stored, as in PIL; there is no gamma and no colour profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/data/images/image_file.h"

namespace dtrain {

// Files of each format begin with these bytes.
inline constexpr std::string_view kPngStart = "\x89PNG\r\n\x1a\n";
inline constexpr std::string_view kJpegStart = "\xff\xd8\xff";

// Describes the part of the decoded pixels that shows the image, as shares of their columns and rows.
struct UsedPart {
  float left = 0, top = 0, right = 1, bottom = 1;
  friend bool operator==(const UsedPart&, const UsedPart&) = default;
};

// Holds rows of pixels, each `channels` bytes: 1 (grey) or 3 (red, green, blue).
struct Pixels {
  ImageSize size;
  ImageSize original;  // as stored; larger than `size` if a JPEG was decoded smaller
  int64_t channels = 0;
  std::vector<uint8_t> bytes = {};
  // The image may end within the last column and row of a JPEG that was decoded smaller: 300 columns at an eighth are
  // 37.5 of 38.
  UsedPart used = {};
};

// Returns black pixels of that size.
Pixels BlankPixels(const ImageSize& size, int64_t channels);

// Throws DataError if an image has no pixel, or more than kPixelsMost.
void CheckSize(const std::string& name, const ImageSize& size);

// Throws DataError for a broken file of that format ("PNG"); `why` is the decoder's message.
[[noreturn]] void FailAsBroken(const std::string& name, const char* kind, const std::string& why);

// Returns a colour's grey: .299 red, .587 green, .114 blue in 16 bits, rounded (PIL's mode L).
inline uint8_t GreyOf(const uint8_t* rgb) {
  return static_cast<uint8_t>((19595U * rgb[0] + 38470U * rgb[1] + 7471U * rgb[2] + 32768U) >> 16);
}

// Converts `count` colours; `grey` may be the same memory.
inline void GreyOfEach(const uint8_t* rgb, size_t count, uint8_t* grey) {
  for (size_t i = 0; i < count; ++i) grey[i] = GreyOf(rgb + 3 * i);
}

// Returns a value of that opacity (255: opaque) over white, rounded as by PIL's Image.alpha_composite.
inline uint8_t OverWhite(uint8_t value, uint8_t alpha) {
  const uint32_t sum = 128U * (uint32_t{value} * alpha + 255U * (255U - alpha) + 128U);
  return static_cast<uint8_t>((sum + (sum >> 8)) >> 15);
}

// Describes the operations that make a stored image upright: reverse rows, reverse columns, then exchange the two.
struct Turn {
  bool reverse_rows = false;
  bool reverse_columns = false;
  bool exchange = false;
  friend bool operator==(const Turn&, const Turn&) = default;

  // Returns the size of the turned image; given the turned size, returns the stored one.
  ImageSize Of(const ImageSize& size) const;
};

// Returns the turn for EXIF's orientation, 1 to 8.
Turn TurnOf(int orientation);

Pixels Turned(const Pixels& from, const Turn& turn);

}  // namespace dtrain
