// The backward pass of a ReLU that is fused into a convolution: the gradient is 0 where the output
// is.
#pragma once

#include "framework/device/cpu/parallel.h"

namespace dtrain {

inline void MaskGradient(int threads, int64_t count, const float* y, float* dy) {
  ForEachSlice(threads, count, [&](Range r) {
    for (int64_t i = r.begin; i < r.end; ++i) dy[i] = y[i] > 0 ? dy[i] : 0;
  });
}

}  // namespace dtrain
