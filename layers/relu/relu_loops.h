// The loops of ReLU are compiled once per instruction set (relu_loops_isa.cc).
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// y may be x.  NaN stays NaN.
DTRAIN_ISA_DECLARE(void, ReluForward, (const float* x, int64_t count, float* y))

// dx may be dy.
DTRAIN_ISA_DECLARE(void, ReluBackward, (const float* y, const float* dy, int64_t count, float* dx))

}  // namespace dtrain
