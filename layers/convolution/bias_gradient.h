// The gradient of a convolution's bias, from output gradients channels last.
#pragma once

#include <algorithm>

#include "framework/device/cpu/parallel.h"
#include "framework/device/shape.h"

namespace dtrain {

// db[o] (+)= the sum of dy [N, O, H, W] over images and pixels; each thread has channels of its
// own.
inline void SumBias(int threads, const Shape& y, const float* dy, bool accumulate, float* db) {
  const int64_t outputs = y[1], pixels = y.count() / outputs;
  RunTeam(threads, [&](int thread, int team) {
    const Range own = SplitEvenly({0, outputs}, team, thread);
    if (!accumulate) std::fill(db + own.begin, db + own.end, 0.0f);
    for (int64_t p = 0; p < pixels; ++p) {
      for (int64_t o = own.begin; o < own.end; ++o) db[o] += dy[p * outputs + o];
    }
  });
}

}  // namespace dtrain
