// The solvers' arithmetic on one element, shared by the CPU's loops (loops_isa.cc) and a GPU's: one formula gives the
// same bits on both.  The functions are static, since the CPU's loops are compiled once per instruction set.
#pragma once

#include <cstdint>

#include "framework/device/device_code.h"
#include "framework/solver/loops.h"

namespace dtrain {

DT_DEVICE static inline uint32_t NotFinite(float x) {
  constexpr uint32_t kExponent = 0x7f800000;  // all ones: infinity or NaN
  return (__builtin_bit_cast(uint32_t, x) & kExponent) == kExponent ? 1u : 0u;
}

// Returns the new weight; updates `velocity`.
template <SgdKind kKind>
DT_DEVICE static inline float SgdElement(const SgdStep& step, float gradient, float w,
                                         float& velocity) {
  if constexpr (kKind == SgdKind::kDecay) {
    velocity = step.momentum * velocity + step.weight_decay * w;
    return w - step.lr * (step.gradient_scale * gradient + velocity);
  } else {
    float direction = step.gradient_scale * gradient + step.weight_decay * w;
    if constexpr (kKind != SgdKind::kPlain) {
      velocity = step.momentum * velocity + direction;
      direction = kKind == SgdKind::kNesterov ? direction + step.momentum * velocity : velocity;
    }
    return w - step.lr * direction;
  }
}

// Returns the new weight; `mean` and `square` are Adam's m and v.
DT_DEVICE static inline float AdamElement(const AdamStep& step, float gradient, float w,
                                          float& mean, float& square) {
  const float g = step.gradient_scale * gradient + step.weight_decay * w;
  mean = step.beta1 * mean + step.take1 * g;
  square = step.beta2 * square + step.take2 * g * g;
  const float root = __builtin_sqrtf(square) * step.root_scale + step.epsilon;
  return step.keep_weights * w - step.step_size * (mean / root);
}

// Returns the new weight; `square` is RMSprop's v, `velocity` its b.
template <bool kMomentum>
DT_DEVICE static inline float RmsPropElement(const RmsPropStep& step, float gradient, float w,
                                             float& square, float& velocity) {
  const float g = step.gradient_scale * gradient + step.weight_decay * w;
  square = step.alpha * square + step.take * g * g;
  float direction = g / (__builtin_sqrtf(square) + step.epsilon);
  if constexpr (kMomentum) {
    velocity = step.momentum * velocity + direction;
    direction = velocity;
  }
  return w - step.lr * direction;
}

}  // namespace dtrain
