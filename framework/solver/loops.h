// The solver's passes over memory, compiled once per instruction set (loops_isa.cc).  They are elementwise, or add in a
// fixed order, without fused multiply-add, so every set gives the same bits.
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// Lists what the velocity of SGD holds.
enum class SgdKind {
  kPlain,     // there is none
  kMomentum,  // the momentum of gradient and weight decay
  kNesterov,
  kDecay,  // that of the weight decay alone: the gradients have theirs already
};

struct SgdStep {
  float lr, momentum, weight_decay, gradient_scale;
  SgdKind kind;
  friend bool operator==(const SgdStep&, const SgdStep&) = default;
};

// Makes one SGD step (formulas in sgd.cc).  velocity is null with kPlain; w_out may be w_in.  Returns false if a
// w_out is NaN or infinite.
DTRAIN_ISA_DECLARE(bool, SgdLoop,
                   (const SgdStep& step, int64_t count, const float* gradient, const float* w_in,
                    float* w_out, float* velocity))

// Holds the coefficients of a step of Adam (formulas in adam.cc).
struct AdamStep {
  float gradient_scale, weight_decay, keep_weights, beta1, beta2, take1, take2;
  float step_size;   // lr / (1 - beta1^t)
  float root_scale;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
  friend bool operator==(const AdamStep&, const AdamStep&) = default;
};

// Makes one step of Adam; m and v are its running means.  w_out may be w_in.  Returns false if a w_out is NaN or
// infinite.
DTRAIN_ISA_DECLARE(bool, AdamLoop,
                   (const AdamStep& step, int64_t count, const float* gradient, const float* w_in,
                    float* w_out, float* m, float* v))

// Holds the coefficients of a step of RMSprop (formulas in rmsprop.cc); take = 1 - alpha.
struct RmsPropStep {
  float gradient_scale, weight_decay, alpha, take, epsilon, momentum, lr;
  friend bool operator==(const RmsPropStep&, const RmsPropStep&) = default;
};

// Makes one step of RMSprop.  velocity is null without momentum; w_out may be w_in.  Returns false if a w_out is NaN or
// infinite.
DTRAIN_ISA_DECLARE(bool, RmsPropLoop,
                   (const RmsPropStep& step, int64_t count, const float* gradient,
                    const float* w_in, float* w_out, float* square, float* velocity))

// Returns the sum of x[i]^2 in double: sixteen interleaved partial sums, then these added pairwise.
DTRAIN_ISA_DECLARE(double, SumOfSquaresLoop, (const float* x, int64_t count))

}  // namespace dtrain
