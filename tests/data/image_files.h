// Images generated for the tests and encoded by the usual libraries.
#pragma once

#include <png.h>
#include <turbojpeg.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/core/random.h"

namespace dtrain {

// Returns rows of random pixels with `channels` bytes each.
inline std::vector<uint8_t> NoisyPixels(int64_t rows, int64_t columns, int64_t channels,
                                        uint64_t seed = 1) {
  const Random random(seed, Purpose::kSelfTest);
  std::vector<uint8_t> pixels(static_cast<size_t>(rows * columns * channels));
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(random.Bits(i));
  return pixels;
}

// Returns slow waves, which JPEG preserves well.
inline std::vector<uint8_t> SmoothPixels(int64_t rows, int64_t columns, int64_t channels) {
  std::vector<uint8_t> pixels;
  for (int64_t y = 0; y < rows; ++y) {
    for (int64_t x = 0; x < columns; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        const double wave = std::sin(0.06 * static_cast<double>(y) + static_cast<double>(c)) +
                            std::cos(0.05 * static_cast<double>(x));
        pixels.push_back(static_cast<uint8_t>(std::lround(128 + 50 * wave)));
      }
    }
  }
  return pixels;
}

// `format` is PNG_FORMAT_GRAY, PNG_FORMAT_RGB or PNG_FORMAT_RGBA.
inline std::string PngOf(const std::vector<uint8_t>& pixels, int64_t rows, int64_t columns,
                         uint32_t format) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<uint32_t>(columns);
  image.height = static_cast<uint32_t>(rows);
  image.format = format;
  png_alloc_size_t bytes = 0;
  png_image_write_to_memory(&image, nullptr, &bytes, 0, pixels.data(), 0, nullptr);
  std::string file(bytes, '\0');
  png_image_write_to_memory(&image, file.data(), &bytes, 0, pixels.data(), 0, nullptr);
  file.resize(bytes);
  return file;
}

inline std::string JpegOf(const std::vector<uint8_t>& pixels, int64_t rows, int64_t columns,
                          int64_t channels) {
  const tjhandle handle = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  tjCompress2(handle, pixels.data(), static_cast<int>(columns), 0, static_cast<int>(rows),
              channels == 1 ? TJPF_GRAY : TJPF_RGB, &bytes, &size,
              channels == 1 ? TJSAMP_GRAY : TJSAMP_444, 95, 0);
  std::string file(reinterpret_cast<char*>(bytes), size);
  tjFree(bytes);
  tjDestroy(handle);
  return file;
}

// Inserts an EXIF block with this orientation, 1 to 8, into a JPEG.
inline std::string WithExif(const std::string& jpeg, int orientation) {
  using namespace std::string_literals;
  const std::string block = "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0"s +
                            char(orientation) + std::string(6, '\0');
  return jpeg.substr(0, 2) + "\xff\xe1"s + '\0' + char(block.size() + 2) + block + jpeg.substr(2);
}

}  // namespace dtrain
