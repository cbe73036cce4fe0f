// The loops of sigmoid are compiled once per instruction set (sigmoid_loops_isa.cc).
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// y may be x.
DTRAIN_ISA_DECLARE(void, SigmoidForward, (const float* x, int64_t count, float* y))

// dx may be dy.
DTRAIN_ISA_DECLARE(void, SigmoidBackward,
                   (const float* y, const float* dy, int64_t count, float* dx))

}  // namespace dtrain
