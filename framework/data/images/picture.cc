#include "framework/data/images/picture.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>

#include <fmt/format.h>
#include <png.h>
#define STB_IMAGE_RESIZE_IMPLEMENTATION
#define STB_IMAGE_RESIZE_STATIC
#include <stb/stb_image_resize.h>
#include <turbojpeg.h>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/core/file.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

// A decoded picture of more pixels takes gigabytes; a header may promise it in a few bytes.
constexpr std::string_view kPngStart = "\x89PNG\r\n\x1a\n";
constexpr std::string_view kJpegStart = "\xff\xd8\xff";

// Rows of pixels, each `channels` bytes.  One that was decoded smaller than it is may have a bit of nothing at
// its right and its lower end: 300 columns at an eighth are 37.5 of 38.
struct Pixels {
  PictureSize size;
  PictureSize original;
  int64_t channels = 0;
  std::vector<uint8_t> bytes = {};
  float used_columns = 1;  // share of them
  float used_rows = 1;
};

void CheckSize(const std::string& name, const PictureSize& size) {
  if (size.rows > 0 && size.columns > 0 && size.rows <= kPixelsMost / size.columns) return;
  throw DataError(fmt::format("{}: a picture of {} x {} pixels is more than dtrain reads", name,
                              size.rows, size.columns),
                  "make it smaller");
}

// The size a picture has before what sticks out is cut off.
PictureSize Covering(const PictureSize& from, const PictureSize& wanted) {
  // Rounded up, so that it covers.
  const int64_t columns = (from.columns * wanted.rows + from.rows - 1) / from.rows;
  if (columns >= wanted.columns) return {wanted.rows, columns};
  return {(from.rows * wanted.columns + from.columns - 1) / from.columns, wanted.columns};
}

PictureSize ScaledSize(const PictureSize& from, const PictureSize& wanted, Fit fit) {
  if (fit == Fit::kNone) return from;
  return fit == Fit::kCrop ? Covering(from, wanted) : wanted;
}

Pixels Resized(const Pixels& from, const PictureSize& size) {
  Pixels to{size, from.original, from.channels};
  to.bytes.resize(static_cast<size_t>(size.rows * size.columns * from.channels));
  const auto narrow = [](int64_t n) { return static_cast<int>(n); };
  const int done = stbir_resize_region(
      from.bytes.data(), narrow(from.size.columns), narrow(from.size.rows), 0, to.bytes.data(),
      narrow(size.columns), narrow(size.rows), 0, STBIR_TYPE_UINT8, narrow(from.channels),
      STBIR_ALPHA_CHANNEL_NONE, 0, STBIR_EDGE_CLAMP, STBIR_EDGE_CLAMP, STBIR_FILTER_TRIANGLE,
      STBIR_FILTER_TRIANGLE, STBIR_COLORSPACE_LINEAR, nullptr, 0, 0, from.used_columns,
      from.used_rows);
  if (done == 0) throw std::bad_alloc();  // its only failure
  return to;
}

class Jpeg {
 public:
  Jpeg(std::string_view bytes, const std::string& name)
      : bytes_(bytes), name_(name), handle_(tjInitDecompress(), tjDestroy) {
    if (handle_ == nullptr) throw DataError(name + ": " + tjGetErrorStr2(nullptr));
    int columns = 0, rows = 0, subsampling = 0;
    if (tjDecompressHeader3(handle_.get(), Begin(), bytes.size(), &columns, &rows, &subsampling,
                            &colours_) != 0) {
      Fail();
    }
    size_ = {rows, columns};
    CheckSize(name, size_);
  }

  const PictureSize& size() const { return size_; }

  Pixels Decode(int64_t channels, const PictureSize& needed) {
    if (colours_ == TJCS_CMYK || colours_ == TJCS_YCCK) {
      throw DataError(name_ + ": the JPEG has the colours of a printer (CMYK)",
                      "convert it to RGB");
    }
    const tjscalingfactor factor = Smallest(needed);
    const PictureSize size = Scaled(factor);
    Pixels pixels{size, size_, channels};
    const auto share = [&](int64_t whole, int64_t scaled) {
      return static_cast<float>(whole * factor.num) / static_cast<float>(scaled * factor.denom);
    };
    pixels.used_columns = share(size_.columns, size.columns);
    pixels.used_rows = share(size_.rows, size.rows);
    pixels.bytes.resize(static_cast<size_t>(size.rows * size.columns * channels));
    if (tjDecompress2(handle_.get(), Begin(), bytes_.size(), pixels.bytes.data(),
                      static_cast<int>(size.columns), 0, static_cast<int>(size.rows),
                      channels == 1 ? TJPF_GRAY : TJPF_RGB, TJFLAG_ACCURATEDCT) != 0) {
      // Stray bytes between two of its parts are no damage; cameras leave them there.
      const bool stray = std::strstr(tjGetErrorStr2(handle_.get()), "extraneous bytes") != nullptr;
      if (!stray || tjGetErrorCode(handle_.get()) != TJERR_WARNING) Fail();
    }
    return pixels;
  }

 private:
  const unsigned char* Begin() const {
    return reinterpret_cast<const unsigned char*>(bytes_.data());
  }

  PictureSize Scaled(const tjscalingfactor& factor) const {
    return {TJSCALED(static_cast<int>(size_.rows), factor),
            TJSCALED(static_cast<int>(size_.columns), factor)};
  }

  // By which the library decodes to the smallest picture that is no smaller than needed.
  tjscalingfactor Smallest(const PictureSize& needed) const {
    int count = 0;
    const tjscalingfactor* factors = tjGetScalingFactors(&count);
    tjscalingfactor best = {1, 1};
    for (int i = 0; i < count; ++i) {
      const PictureSize scaled = Scaled(factors[i]);
      if (scaled.rows >= needed.rows && scaled.columns >= needed.columns &&
          factors[i].num * best.denom < best.num * factors[i].denom) {
        best = factors[i];
      }
    }
    return best;
  }

  [[noreturn]] void Fail() const {
    throw DataError(fmt::format("{}: the JPEG is broken: {}", name_, tjGetErrorStr2(handle_.get())),
                    "remove the picture, or save it anew");
  }

  const std::string_view bytes_;
  const std::string& name_;
  const std::unique_ptr<void, int (*)(tjhandle)> handle_;
  PictureSize size_;
  int colours_ = 0;
};

class Png {
 public:
  Png(std::string_view bytes, const std::string& name) : name_(name) {
    image_.version = PNG_IMAGE_VERSION;
    if (png_image_begin_read_from_memory(&image_, bytes.data(), bytes.size()) == 0) Fail();
    CheckSize(name, size());
  }
  Png(const Png&) = delete;
  ~Png() { png_image_free(&image_); }

  PictureSize size() const { return {image_.height, image_.width}; }

  Pixels Decode(int64_t channels) {
    Pixels pixels{size(), size(), channels};
    image_.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    pixels.bytes.resize(PNG_IMAGE_SIZE(image_));
    const png_color white = {255, 255, 255};
    if (png_image_finish_read(&image_, &white, pixels.bytes.data(), 0, nullptr) == 0) Fail();
    if (PNG_IMAGE_FAILED(image_)) Fail();
    return pixels;
  }

 private:
  [[noreturn]] void Fail() const {
    throw DataError(fmt::format("{}: the PNG is broken: {}", name_, image_.message),
                    "remove the picture, or save it anew");
  }

  png_image image_ = {};
  const std::string& name_;
};

[[noreturn]] void FailAsNone(std::string_view bytes, const std::string& name) {
  throw DataError(
      fmt::format("{}: {}", name, bytes.empty() ? "the file is empty" : "this is no JPEG or PNG"),
      "convert it, or remove it");
}

Pixels Decode(std::string_view bytes, const std::string& name, int64_t channels,
              const PictureSize& wanted, Fit fit) {
  if (bytes.starts_with(kPngStart)) return Png(bytes, name).Decode(channels);
  if (!bytes.starts_with(kJpegStart)) FailAsNone(bytes, name);
  Jpeg jpeg(bytes, name);
  return jpeg.Decode(channels, ScaledSize(jpeg.size(), wanted, fit));
}

}  // namespace

std::string NameOf(Fit fit) { return kFitNames[static_cast<int>(fit)]; }

Fit FitOf(const std::string& name) {
  const auto* found = std::find(std::begin(kFitNames), std::end(kFitNames), name);
  DT_CHECK(found != std::end(kFitNames)) << name;
  return static_cast<Fit>(found - kFitNames);
}

bool IsPictureName(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

bool IsPicture(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;  // a pipe would keep us waiting
  std::string start(kPngStart.size(), '\0');
  std::ifstream(path, std::ios::binary).read(start.data(), std::ssize(start));
  return start.starts_with(kPngStart) || start.starts_with(kJpegStart);
}

PictureSize ReadPictureSize(const fs::path& path) {
  const std::string name = path.string();
  const std::string bytes = ReadFile(path);
  if (bytes.starts_with(kPngStart)) return Png(bytes, name).size();
  if (bytes.starts_with(kJpegStart)) return Jpeg(bytes, name).size();
  FailAsNone(bytes, name);
}

void DecodePicture(std::string_view bytes, const std::string& name, const Shape& shape, Fit fit,
                   uint8_t* to) {
  const int64_t channels = shape[0];
  const PictureSize wanted = {shape[1], shape[2]};
  Pixels pixels = Decode(bytes, name, channels, wanted, fit);
  const PictureSize scaled = ScaledSize(pixels.original, wanted, fit);
  if (fit == Fit::kNone && pixels.size != wanted) {
    throw DataError(fmt::format("{}: a picture of {} x {} pixels among those of {} x {}", name,
                                pixels.size.rows, pixels.size.columns, wanted.rows, wanted.columns),
                    "give all of them one size: data.size with data.fit stretch or crop");
  }
  if (pixels.size != scaled || pixels.used_columns < 1 || pixels.used_rows < 1) {
    pixels = Resized(pixels, scaled);
  }
  // What sticks out, and channel by channel.
  const int64_t top = (scaled.rows - wanted.rows) / 2;
  const int64_t left = (scaled.columns - wanted.columns) / 2;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t y = 0; y < wanted.rows; ++y) {
      const uint8_t* from =
          pixels.bytes.data() + ((top + y) * scaled.columns + left) * channels + c;
      for (int64_t x = 0; x < wanted.columns; ++x) *to++ = from[x * channels];
    }
  }
}

}  // namespace dtrain
