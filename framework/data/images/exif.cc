// Only one tag of a TIFF directory is needed.  A library (libexif) would parse all other tags and the thumbnail first,
// so this is our own code; NumberAt reads every number and checks the end.
#include "framework/data/images/exif.h"

#include <cstddef>
#include <cstdint>

#include "framework/data/images/pixels.h"

namespace dtrain {
namespace {

using namespace std::string_view_literals;

constexpr int kUpright = 1;
constexpr size_t kOrientationTag = 0x0112;
constexpr size_t kShort = 3, kLong = 4;  // TIFF's types of numbers

// Returns the whole number at a position; 0 if it extends beyond the last byte.
size_t NumberAt(std::string_view bytes, size_t at, size_t count, bool little_endian) {
  if (bytes.size() < count || at > bytes.size() - count) return 0;
  size_t number = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto byte = static_cast<uint8_t>(bytes[at + (little_endian ? count - 1 - i : i)]);
    number = number << 8 | byte;
  }
  return number;
}

// Reads the first directory of a TIFF file, which is what an EXIF block is.
int OrientationOfTiff(std::string_view tiff) {
  const bool little_endian = tiff.starts_with("II*\0"sv);
  if (!little_endian && !tiff.starts_with("MM\0*"sv)) return kUpright;
  const auto number = [&](size_t at, size_t count) {
    return NumberAt(tiff, at, count, little_endian);
  };
  const size_t directory = number(4, 4);
  const size_t entries = number(directory, 2);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + 12 * i;  // tag, type, count, value
    if (number(entry, 2) != kOrientationTag) continue;
    const size_t type = number(entry + 2, 2), count = number(entry + 4, 4);
    const size_t width = type == kShort ? 2 : type == kLong ? 4 : 0;
    // The entry itself holds the numbers if they fit into four bytes; PIL takes the first.
    if (width == 0 || count == 0 || count > 4 / width) return kUpright;
    const size_t value = number(entry + 8, width);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : kUpright;
  }
  return kUpright;
}

// True for markers without a segment: stuffed bytes, restarts, start of image.
bool StandsAlone(uint8_t marker) { return marker <= 0x01 || (marker >= 0xd0 && marker <= 0xd8); }

// Returns the EXIF block of a JPEG, which precedes its first scan.
std::string_view ExifOfJpeg(std::string_view file) {
  constexpr std::string_view kStart = "Exif\0\0"sv;
  constexpr uint8_t kEndOfImage = 0xd9, kStartOfScan = 0xda, kApp1 = 0xe1;
  size_t at = 2;
  while ((at = file.find_first_not_of('\xff', file.find('\xff', at))) < file.size()) {
    const auto marker = static_cast<uint8_t>(file[at++]);
    if (StandsAlone(marker)) continue;
    const size_t length = NumberAt(file, at, 2, false);  // itself included
    if (marker == kEndOfImage || marker == kStartOfScan || length < 2) break;
    const std::string_view segment = file.substr(at + 2, length - 2);
    if (marker == kApp1 && segment.starts_with(kStart)) return segment.substr(kStart.size());
    at += length;
  }
  return {};
}

// Returns a PNG's chunk eXIf, which may follow the pixels.
std::string_view ExifOfPng(std::string_view file) {
  constexpr size_t kFrame = 12;  // length, name and checksum
  size_t at = kPngStart.size();
  while (file.size() >= kFrame && at <= file.size() - kFrame) {
    const size_t length = NumberAt(file, at, 4, false);
    const std::string_view name = file.substr(at + 4, 4);
    if (name == "eXIf") return file.substr(at + 8, length);
    if (name == "IEND") break;
    at += kFrame + length;
  }
  return {};
}

}  // namespace

int ExifOrientation(std::string_view file) {
  if (file.starts_with(kPngStart)) return OrientationOfTiff(ExifOfPng(file));
  if (file.starts_with(kJpegStart)) return OrientationOfTiff(ExifOfJpeg(file));
  return kUpright;
}

}  // namespace dtrain
