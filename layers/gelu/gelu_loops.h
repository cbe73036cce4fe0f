// The loops of GELU are compiled once per instruction set (gelu_loops_isa.cc).
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// These are the coefficients of `approximate: tanh` (gelu.h): 2 z = x (kGeluLinear + kGeluCubic
// x^2).
inline constexpr double kGeluLinear = 1.5957691216057308;  // 2 sqrt(2 / pi)
inline constexpr double kGeluCubic = 0.044715 * kGeluLinear;

// y may be x, dx may be dy.
DTRAIN_ISA_DECLARE(void, GeluForward, (const float* x, int64_t count, float* y))
DTRAIN_ISA_DECLARE(void, GeluBackward, (const float* x, const float* dy, int64_t count, float* dx))

// TanhGelu... compute the same with `approximate: tanh`.
DTRAIN_ISA_DECLARE(void, TanhGeluForward, (const float* x, int64_t count, float* y))
DTRAIN_ISA_DECLARE(void, TanhGeluBackward,
                   (const float* x, const float* dy, int64_t count, float* dx))

}  // namespace dtrain
