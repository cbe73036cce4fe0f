#include "framework/data/images/decode_png.h"

#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include <png.h>

namespace dtrain {
namespace {

// libpng passes this to the callbacks.
struct PngSource {
  std::string_view rest;  // of the file
  std::array<char, 256> error = {};
};

// An error must not return to libpng, and an exception must not pass through C, so this jumps to EndsWell.
[[noreturn]] void LeavePng(png_structp png, png_const_charp why) {
  auto& source = *static_cast<PngSource*>(png_get_error_ptr(png));
  std::snprintf(source.error.data(), source.error.size(), "%s", why);
  png_longjmp(png, 1);
}

// libpng only warns of a wrong checksum of the unpacked pixels; PIL refuses such a file.
void HearPngWarning(png_structp png, png_const_charp text) {
  if (std::strstr(text, "incorrect data check") != nullptr) png_error(png, text);
}

void ReadPngBytes(png_structp png, png_bytep to, size_t count) {
  std::string_view& rest = static_cast<PngSource*>(png_get_io_ptr(png))->rest;
  if (count > rest.size()) png_error(png, "it ends early");
  std::memcpy(to, rest.data(), count);
  rest.remove_prefix(count);
}

// Runs `body`, which calls libpng; returns false if an error jumped back here.  The jump runs no destructor, so neither
// `body` nor its callees may hold an object that needs one.
template <class Body>
bool EndsWell(png_structp png, const Body& body) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  body();
  return true;
}

// Returns red, green and blue of a pixel of 1 (grey), 2 (with alpha), 3 (colours) or 4 bytes, over white.
std::array<uint8_t, 3> OpaqueColour(const uint8_t* pixel, int64_t channels) {
  const bool coloured = channels >= 3;
  const uint8_t alpha = channels % 2 == 0 ? pixel[channels - 1] : 255;
  std::array<uint8_t, 3> rgb = {pixel[0], pixel[coloured ? 1 : 0], pixel[coloured ? 2 : 0]};
  if (alpha == 255) return rgb;
  for (uint8_t& value : rgb) value = OverWhite(value, alpha);
  return rgb;
}

// Converts 1 to 4 bytes per pixel to 1 or 3.
void ConvertRow(const uint8_t* from, int64_t from_channels, int64_t columns, int64_t channels,
                uint8_t* to) {
  const auto count = static_cast<size_t>(columns);
  if (from_channels == channels) {
    std::memcpy(to, from, count * static_cast<size_t>(channels));
    return;
  }
  if (from_channels == 3) return GreyOfEach(from, count, to);
  for (int64_t x = 0; x < columns; ++x, from += from_channels, to += channels) {
    const std::array<uint8_t, 3> rgb = OpaqueColour(from, from_channels);
    if (channels == 3) {
      std::memcpy(to, rgb.data(), 3);
    } else {
      *to = GreyOf(rgb.data());
    }
  }
}

// Returns the entries of PLTE, with the alpha of tRNS, as pixels of the image.
std::vector<uint8_t> PaletteOf(png_structp png, png_infop info, int64_t channels) {
  png_colorp colours = nullptr;
  png_bytep alpha = nullptr;
  int count = 0, alphas = 0;
  png_get_PLTE(png, info, &colours, &count);
  png_get_tRNS(png, info, &alpha, &alphas, nullptr);
  std::vector<uint8_t> entries;
  for (int i = 0; i < count; ++i) {
    const uint8_t opacity = i < alphas ? alpha[i] : 255;
    entries.insert(entries.end(), {colours[i].red, colours[i].green, colours[i].blue, opacity});
  }
  std::vector<uint8_t> palette(static_cast<size_t>(count * channels));
  ConvertRow(entries.data(), 4, count, channels, palette.data());
  return palette;
}

class PngReader {
 public:
  PngReader(std::string_view file, const std::string& name) : source_{file}, name_(name) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source_, LeavePng, HearPngWarning);
    info_ = png_ == nullptr ? nullptr : png_create_info_struct(png_);
  }
  PngReader(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }

  ImageSize ReadHeader() {
    if (info_ == nullptr) throw std::bad_alloc();
    Call([this] {
      png_set_read_fn(png_, &source_, ReadPngBytes);
      png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);  // -1: known ones too
      png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
      png_read_info(png_, info_);
    });
    const ImageSize size = {png_get_image_height(png_, info_), png_get_image_width(png_, info_)};
    CheckSize(name_, size);
    return size;
  }

  Pixels Decode(int64_t channels) {
    Pixels pixels = BlankPixels(ReadHeader(), channels);
    if (png_get_color_type(png_, info_) == PNG_COLOR_TYPE_PALETTE) {
      palette_ = PaletteOf(png_, info_, channels);
    }
    int passes = 1;
    Call([&] {
      if (palette_.empty()) {
        png_set_expand(png_);  // expands to bytes, and tRNS to alpha
        png_set_scale_16(png_);
      } else {
        png_set_packing(png_);  // one byte per palette index
      }
      passes = png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
    });
    ReadRows(passes, pixels);
    return pixels;
  }

 private:
  // An interlaced image is complete after its last pass only, so all of its rows are kept until then.
  void ReadRows(int passes, Pixels& pixels) {
    const size_t row_bytes = png_get_rowbytes(png_, info_);
    const auto count = static_cast<size_t>(pixels.size.rows);
    std::vector<uint8_t> kept(row_bytes * (passes == 1 ? 1 : count));
    Call([&] {
      for (int pass = 1; pass <= passes; ++pass) {
        for (size_t y = 0; y < count; ++y) {
          uint8_t* const row = kept.data() + (passes == 1 ? 0 : y * row_bytes);
          png_read_row(png_, row, nullptr);
          if (pass == passes) Convert(row, y, pixels);
        }
      }
    });
  }

  void Convert(const uint8_t* row, size_t y, Pixels& pixels) const {
    const int64_t columns = pixels.size.columns;
    uint8_t* const to = pixels.bytes.data() + y * static_cast<size_t>(columns * pixels.channels);
    if (!palette_.empty()) {
      return pixels.channels == 3 ? LookUp<3>(row, columns, to) : LookUp<1>(row, columns, to);
    }
    ConvertRow(row, png_get_channels(png_, info_), columns, pixels.channels, to);
  }

  template <size_t kChannels>
  void LookUp(const uint8_t* row, int64_t columns, uint8_t* to) const {
    for (int64_t x = 0; x < columns; ++x, to += kChannels) {
      const size_t entry = row[x] * kChannels;
      if (entry >= palette_.size()) png_error(png_, "a pixel's colour is not in its palette");
      std::memcpy(to, palette_.data() + entry, kChannels);
    }
  }

  template <class Body>
  void Call(const Body& body) {
    if (!EndsWell(png_, body)) FailAsBroken(name_, "PNG", source_.error.data());
  }

  PngSource source_;
  const std::string& name_;
  std::vector<uint8_t> palette_;  // empty without a palette
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

ImageSize PngSize(std::string_view file, const std::string& name) {
  return PngReader(file, name).ReadHeader();
}

Pixels DecodePng(std::string_view file, const std::string& name, int64_t channels) {
  return PngReader(file, name).Decode(channels);
}

}  // namespace dtrain
