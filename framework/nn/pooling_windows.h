// Describes the windows of pooling: the rows of an image and of its windows, and the columns.  The kernels of pooling use
// it, and those of layers that compute max pooling of their output as well (program.h).
//
//   windows of a given size   window i covers the pixels [i stride - pad, i stride - pad + kernel)
//   adaptive                  window i of N covers [floor(i H / N), ceil((i + 1) H / N)) of H pixels
//                             (PyTorch's rule); every pixel is covered, and windows may overlap
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/device/device_code.h"

namespace dtrain {

struct PoolingSpan {
  int64_t begin, end;
};

struct PoolingAxis {
  int64_t pixels = 0, windows = 0;
  int64_t kernel = 0;  // pixels per window; adaptive: an upper bound
  int64_t stride = 1, pad = 0;
  bool adaptive = false;

  // Return the first pixel of a window and the one after its last; both may be outside the image.
  DT_DEVICE int64_t StartOf(int64_t window) const {
    return adaptive ? window * pixels / windows : window * stride - pad;
  }
  DT_DEVICE int64_t EndOf(int64_t window) const {
    return adaptive ? ((window + 1) * pixels + windows - 1) / windows : StartOf(window) + kernel;
  }
  DT_DEVICE int64_t LengthOf(int64_t window) const { return EndOf(window) - StartOf(window); }
  // Returns the pixels of a window that are inside the image.
  DT_DEVICE PoolingSpan PixelsOf(int64_t window) const {
    const int64_t start = StartOf(window), end = EndOf(window);
    return {start < 0 ? 0 : start, end < pixels ? end : pixels};
  }
  // Returns the windows that contain a pixel.
  DT_DEVICE PoolingSpan WindowsOf(int64_t pixel) const {
    if (adaptive) {
      return {pixel * windows / pixels, ((pixel + 1) * windows + pixels - 1) / pixels};
    }
    const int64_t before = pixel + pad - kernel, last = (pixel + pad) / stride;
    return {before < 0 ? 0 : before / stride + 1, last < windows ? last + 1 : windows};
  }
};

// Describes the windows of an image.
struct PoolingWindows {
  PoolingAxis rows, columns;

  // Returns the weight of a pixel in its window's mean, in which padding counts as pixels.
  DT_DEVICE float ShareOf(int64_t row, int64_t column) const {
    return 1.0f / static_cast<float>(rows.LengthOf(row) * columns.LengthOf(column));
  }
  int64_t MostPixels() const { return rows.kernel * columns.kernel; }

  // The index of a maximum in its window is stored in a byte if that is enough, else in 32 bits.  The value with all
  // bits set (kNoPixel) means that the ReLU's output is 0 and no pixel takes the gradient.
  bool PlacesFitBytes() const { return MostPixels() < 256; }
  size_t PlaceBytes() const { return PlacesFitBytes() ? sizeof(uint8_t) : sizeof(int32_t); }
};

template <class Winner>
inline constexpr Winner kNoPixel = static_cast<Winner>(-1);

}  // namespace dtrain
