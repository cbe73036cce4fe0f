#include "framework/data/images/image_file.h"

#include <algorithm>
#include <fstream>
#include <new>

#include <fmt/format.h>
#define STB_IMAGE_RESIZE_IMPLEMENTATION
#define STB_IMAGE_RESIZE_STATIC
// The library asserts that weights sum to 1 within a tenth before it normalises them.  That is not true if only a part
// of a pixel is used, and release builds do not check it.
#define STBIR_ASSERT(condition) static_cast<void>(condition)
#include <stb/stb_image_resize.h>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "framework/data/images/decode_jpeg.h"
#include "framework/data/images/decode_png.h"
#include "framework/data/images/exif.h"
#include "framework/data/images/pixels.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

// Returns the size to which an image is scaled before the excess is cut off.
ImageSize Covering(const ImageSize& from, const ImageSize& wanted) {
  // The other side is rounded up, so that the image covers the wanted size.
  const int64_t columns = (from.columns * wanted.rows + from.rows - 1) / from.rows;
  if (columns >= wanted.columns) return {wanted.rows, columns};
  return {(from.rows * wanted.columns + from.columns - 1) / from.columns, wanted.columns};
}

ImageSize ScaledSize(const ImageSize& from, const ImageSize& wanted, Fit fit) {
  if (fit == Fit::kNone) return from;
  return fit == Fit::kCrop ? Covering(from, wanted) : wanted;
}

Pixels Resized(const Pixels& from, const ImageSize& size) {
  Pixels to = BlankPixels(size, from.channels);
  const auto narrow = [](int64_t n) { return static_cast<int>(n); };
  const int done = stbir_resize_region(
      from.bytes.data(), narrow(from.size.columns), narrow(from.size.rows), 0, to.bytes.data(),
      narrow(size.columns), narrow(size.rows), 0, STBIR_TYPE_UINT8, narrow(from.channels),
      STBIR_ALPHA_CHANNEL_NONE, 0, STBIR_EDGE_CLAMP, STBIR_EDGE_CLAMP, STBIR_FILTER_TRIANGLE,
      STBIR_FILTER_TRIANGLE, STBIR_COLORSPACE_LINEAR, nullptr, from.used.left, from.used.top,
      from.used.right, from.used.bottom);
  if (done == 0) throw std::bad_alloc();  // its only failure
  return to;
}

[[noreturn]] void FailAsNone(std::string_view bytes, const std::string& name) {
  throw DataError(
      fmt::format("{}: {}", name, bytes.empty() ? "the file is empty" : "this is no JPEG or PNG"),
      "convert it, or remove it");
}

Turn TurnFor(std::string_view bytes, Orientation orientation) {
  return orientation == Orientation::kExif ? TurnOf(ExifOrientation(bytes)) : Turn{};
}

// Decodes and turns.  A JPEG's sizes are those of the image as it is stored.
Pixels Decode(std::string_view bytes, const std::string& name, int64_t channels, const Turn& turn,
              const ImageSize& wanted, Fit fit) {
  const auto decode = [&] {
    if (bytes.starts_with(kPngStart)) return DecodePng(bytes, name, channels);
    if (!bytes.starts_with(kJpegStart)) FailAsNone(bytes, name);
    return DecodeJpeg(bytes, name, channels, [&](const ImageSize& stored) {
      return turn.Of(ScaledSize(turn.Of(stored), wanted, fit));
    });
  };
  return turn == Turn{} ? decode() : Turned(decode(), turn);
}

}  // namespace

std::string NameOf(Fit fit) { return kFitNames[static_cast<int>(fit)]; }

Fit FitOf(const std::string& name) {
  const auto* found = std::find(std::begin(kFitNames), std::end(kFitNames), name);
  DT_CHECK(found != std::end(kFitNames)) << name;
  return static_cast<Fit>(found - kFitNames);
}

std::string NameOf(Orientation orientation) {
  return kOrientationNames[static_cast<int>(orientation)];
}

Orientation OrientationOf(const std::string& name) {
  const auto* found = std::ranges::find(kOrientationNames, name);
  DT_CHECK(found != std::end(kOrientationNames)) << name;
  return static_cast<Orientation>(found - kOrientationNames);
}

bool IsImageName(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

bool IsImage(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;  // a pipe could block
  std::string start(kPngStart.size(), '\0');
  std::ifstream(path, std::ios::binary).read(start.data(), std::ssize(start));
  return start.starts_with(kPngStart) || start.starts_with(kJpegStart);
}

ImageSize ReadImageSize(const fs::path& path, Orientation orientation) {
  const std::string name = Printable(path.string());
  const std::string bytes = ReadFile(path);
  const Turn turn = TurnFor(bytes, orientation);
  if (bytes.starts_with(kPngStart)) return turn.Of(PngSize(bytes, name));
  if (bytes.starts_with(kJpegStart)) return turn.Of(JpegSize(bytes, name));
  FailAsNone(bytes, name);
}

bool DecodeImage(std::string_view bytes, const std::string& name, const Shape& shape, Fit fit,
                 Orientation orientation, uint8_t* to) {
  const int64_t channels = shape[0];
  const ImageSize wanted = {shape[1], shape[2]};
  const Turn turn = TurnFor(bytes, orientation);
  Pixels pixels = Decode(bytes, name, channels, turn, wanted, fit);
  const ImageSize scaled = ScaledSize(pixels.original, wanted, fit);
  if (fit == Fit::kNone && pixels.size != wanted) {
    throw DataError(fmt::format("{}: an image of {} x {} pixels among those of {} x {}", name,
                                pixels.size.rows, pixels.size.columns, wanted.rows, wanted.columns),
                    "give all of them one size: data.size with data.fit stretch or crop");
  }
  if (pixels.size != scaled || pixels.used != UsedPart{}) pixels = Resized(pixels, scaled);
  // Cuts off the excess, and stores channel by channel.
  const int64_t top = (scaled.rows - wanted.rows) / 2;
  const int64_t left = (scaled.columns - wanted.columns) / 2;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t y = 0; y < wanted.rows; ++y) {
      const uint8_t* from =
          pixels.bytes.data() + ((top + y) * scaled.columns + left) * channels + c;
      for (int64_t x = 0; x < wanted.columns; ++x) *to++ = from[x * channels];
    }
  }
  return turn != Turn{};
}

}  // namespace dtrain
