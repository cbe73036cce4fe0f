// The loops of leaky ReLU are compiled once per instruction set (leaky_relu_loops_isa.cc).
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// y may be x.  NaN stays NaN.
DTRAIN_ISA_DECLARE(void, LeakyReluForward, (const float* x, int64_t count, float slope, float* y))

// dx may be dy.
DTRAIN_ISA_DECLARE(void, LeakyReluBackward,
                   (const float* y, const float* dy, int64_t count, float slope, float* dx))

}  // namespace dtrain
