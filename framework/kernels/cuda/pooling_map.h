// PoolingMap finds the elements of channels_last images that belong together in pooling, for kernels on the GPU.
#pragma once

#include <cstdint>

#include "framework/device/device_code.h"
#include "framework/nn/pooling_windows.h"

namespace dtrain {

struct PoolingPlace {
  int64_t image, row, column, channel;
};

struct PoolingMap {
  PoolingWindows windows;
  int64_t channels;
  bool plain_output;  // [N, C, H, W]

  DT_DEVICE static PoolingPlace PlaceIn(int64_t i, int64_t rows, int64_t columns,
                                        int64_t channels) {
    const int64_t pixel = i / channels;
    return {pixel / columns / rows, pixel / columns % rows, pixel % columns, i % channels};
  }
  DT_DEVICE PoolingPlace Output(int64_t i) const {
    if (plain_output) {
      const int64_t line = i / windows.columns.windows, plane = line / windows.rows.windows;
      return {plane / channels, line % windows.rows.windows, i % windows.columns.windows,
              plane % channels};
    }
    return PlaceIn(i, windows.rows.windows, windows.columns.windows, channels);
  }
  DT_DEVICE PoolingPlace Input(int64_t i) const {
    return PlaceIn(i, windows.rows.pixels, windows.columns.pixels, channels);
  }
  DT_DEVICE int64_t OutputAt(const PoolingPlace& p, int64_t row, int64_t column) const {
    if (plain_output) {
      return ((p.image * channels + p.channel) * windows.rows.windows + row) *
                 windows.columns.windows +
             column;
    }
    return ((p.image * windows.rows.windows + row) * windows.columns.windows + column) * channels +
           p.channel;
  }
  DT_DEVICE int64_t InputAt(const PoolingPlace& p, int64_t row, int64_t column) const {
    return ((p.image * windows.rows.pixels + row) * windows.columns.pixels + column) * channels +
           p.channel;
  }
  // Returns the index of a pixel in a window.
  DT_DEVICE int64_t InWindow(int64_t window_row, int64_t window_column, int64_t row,
                             int64_t column) const {
    return (row - windows.rows.StartOf(window_row)) * windows.columns.kernel + column -
           windows.columns.StartOf(window_column);
  }

  // Returns output i of max pooling, and the index of its pixel in the window in *winner.  Of equal pixels the first
  // wins; a NaN propagates.  value_at(j) is input j.
  template <class ValueAt>
  DT_DEVICE float Largest(const ValueAt& value_at, int64_t i, int64_t* winner) const {
    const PoolingPlace out = Output(i);
    const PoolingSpan height = windows.rows.PixelsOf(out.row),
                      width = windows.columns.PixelsOf(out.column);
    float largest = 0;
    int64_t best = -1;
    for (int64_t row = height.begin; row < height.end; ++row) {
      for (int64_t column = width.begin; column < width.end; ++column) {
        const float value = value_at(InputAt(out, row, column));
        if (best >= 0 && !(value > largest) && value == value) continue;
        largest = value;
        best = InWindow(out.row, out.column, row, column);
      }
    }
    *winner = best;
    return largest;
  }

  template <class T>
  DT_DEVICE float Mean(const T* x, int64_t i) const {
    const PoolingPlace out = Output(i);
    const PoolingSpan height = windows.rows.PixelsOf(out.row),
                      width = windows.columns.PixelsOf(out.column);
    float sum = 0;
    for (int64_t row = height.begin; row < height.end; ++row) {
      for (int64_t column = width.begin; column < width.end; ++column) {
        sum += static_cast<float>(x[InputAt(out, row, column)]);
      }
    }
    return sum * windows.ShareOf(out.row, out.column);
  }

  // Returns the gradient by input i: the sum over the windows that contain it.  `winners` is null for average pooling.
  template <class T, class Winner>
  DT_DEVICE float Gradient(const T* dy, const Winner* winners, int64_t i) const {
    const PoolingPlace in = Input(i);
    const PoolingSpan down = windows.rows.WindowsOf(in.row),
                      across = windows.columns.WindowsOf(in.column);
    float sum = 0;
    for (int64_t row = down.begin; row < down.end; ++row) {
      for (int64_t column = across.begin; column < across.end; ++column) {
        const int64_t out = OutputAt(in, row, column);
        if (winners == nullptr) {
          sum += static_cast<float>(dy[out]) * windows.ShareOf(row, column);
        } else if (winners[out] == static_cast<Winner>(InWindow(row, column, in.row, in.column))) {
          sum += static_cast<float>(dy[out]);
        }
      }
    }
    return sum;
  }
};

}  // namespace dtrain
