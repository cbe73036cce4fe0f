// The softmax of one row is compiled once per instruction set (softmax_cross_entropy_loops_isa.cc).
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

struct SoftmaxRow {
  float largest = 0;  // largest logit; NaNs are skipped
  double sum = 0;     // of exp(x - largest); NaN where a logit is NaN or +infinity
  double logits = 0;  // sum of x - largest
};

DTRAIN_ISA_DECLARE(SoftmaxRow, SoftmaxOf, (const float* x, int64_t count))

// dx[c] = factor * exp(x[c] - largest) - offset
DTRAIN_ISA_DECLARE(void, SoftmaxGradient,
                   (const float* x, int64_t count, float largest, float factor, float offset,
                    float* dx))

}  // namespace dtrain
