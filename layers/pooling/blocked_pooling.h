// The loops of pooling.  They process one image plane [rows, columns, lanes] at a time; the lanes are the sixteen
// samples of a batch_blocked image or the channels of a channels_last one (device/tensor.h).
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

struct PoolingPlane {
  int64_t height = 0;
  int64_t width = 0;
  int64_t out_height = 0;
  int64_t out_width = 0;
  int64_t kernel = 0;
  int64_t stride = 0;
  int64_t pad = 0;
  int64_t lanes = 16;  // a multiple of 16
};

// This is the value in `winners` if no pixel of the window takes the gradient, because the ReLU's output is 0.
inline constexpr uint8_t kNoWinner = 255;

// y = the largest of each window, then max(0, .) if `relu`.  `winners` (may be null) receives, for each element of y,
// the index row * kernel + column of the first largest pixel in its window, or kNoWinner.
DTRAIN_ISA_DECLARE(void, MaxPoolPlane,
                   (const PoolingPlane& plane, const float* x, bool relu, float* y,
                    uint8_t* winners))
DTRAIN_ISA_DECLARE(void, MaxPoolPlaneBackward,
                   (const PoolingPlane& plane, const float* dy, const uint8_t* winners, float* dx))

DTRAIN_ISA_DECLARE(void, AveragePoolPlane, (const PoolingPlane& plane, const float* x, float* y))
DTRAIN_ISA_DECLARE(void, AveragePoolPlaneBackward,
                   (const PoolingPlane& plane, const float* dy, float* dx))

}  // namespace dtrain
