// The loops of the activations are compiled once per instruction set (activations_loops_isa.cc).
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// kTanhGelu is gelu with `approximate: tanh` (activations.h).
enum class ActivationKind { kRelu, kLeakyRelu, kSigmoid, kTanh, kSilu, kGelu, kTanhGelu };

struct ActivationFunction {
  ActivationKind kind = ActivationKind::kRelu;
  float slope = 0;  // of kLeakyRelu below 0
};

// These are the coefficients of kTanhGelu: 2 z = x (kGeluLinear + kGeluCubic x^2).
inline constexpr double kGeluLinear = 1.5957691216057308;  // 2 sqrt(2 / pi)
inline constexpr double kGeluCubic = 0.044715 * kGeluLinear;

// y may be x.  NaN stays NaN.
DTRAIN_ISA_DECLARE(void, ActivationForward,
                   (const ActivationFunction& function, const float* x, int64_t count, float* y))

// kept is x or y, as ActivationLayer::keeps_input tells.  dx may be dy.
DTRAIN_ISA_DECLARE(void, ActivationBackward,
                   (const ActivationFunction& function, const float* kept, const float* dy,
                    int64_t count, float* dx))

}  // namespace dtrain
