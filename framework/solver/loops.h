// The solver's passes over memory, compiled once per instruction set (loops_isa.cc).  Elementwise,
// or with a fixed order of additions, and without fused multiply-add: every set gives the same
// bits.
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

struct SgdStep {
  float lr, momentum, weight_decay, gradient_scale;
  bool nesterov;
  friend bool operator==(const SgdStep&, const SgdStep&) = default;
};

// One SGD step (sgd.cc has the formulas).  velocity is null without momentum; w_out may be w_in.
// False when a w_out is NaN or infinite.
DTRAIN_ISA_DECLARE(bool, SgdLoop,
                   (const SgdStep& step, int64_t count, const float* gradient, const float* w_in,
                    float* w_out, float* velocity))

// What a step of Adam multiplies by (adam.cc has the formulas).
struct AdamStep {
  float gradient_scale, weight_decay, keep_weights, beta1, beta2, take1, take2;
  float step_size;   // lr / (1 - beta1^t)
  float root_scale;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
  friend bool operator==(const AdamStep&, const AdamStep&) = default;
};

// One step of Adam; m and v are its running means.  w_out may be w_in.  False when a w_out is NaN
// or infinite.
DTRAIN_ISA_DECLARE(bool, AdamLoop,
                   (const AdamStep& step, int64_t count, const float* gradient, const float* w_in,
                    float* w_out, float* m, float* v))

// What a step of RMSprop multiplies by (rmsprop.cc has the formulas); take = 1 - alpha.
struct RmsPropStep {
  float gradient_scale, weight_decay, alpha, take, epsilon, momentum, lr;
  friend bool operator==(const RmsPropStep&, const RmsPropStep&) = default;
};

// One step of RMSprop.  velocity is null without momentum; w_out may be w_in.  False when a w_out is
// NaN or infinite.
DTRAIN_ISA_DECLARE(bool, RmsPropLoop,
                   (const RmsPropStep& step, int64_t count, const float* gradient,
                    const float* w_in, float* w_out, float* square, float* velocity))

// Sum of x[i]^2 in double: sixteen interleaved partial sums, then these added pairwise.
DTRAIN_ISA_DECLARE(double, SumOfSquaresLoop, (const float* x, int64_t count))

}  // namespace dtrain
