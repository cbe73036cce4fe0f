// The loops of SiLU are compiled once per instruction set (silu_loops_isa.cc).
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// y may be x.
DTRAIN_ISA_DECLARE(void, SiluForward, (const float* x, int64_t count, float* y))

// dx may be dy.
DTRAIN_ISA_DECLARE(void, SiluBackward, (const float* x, const float* dy, int64_t count, float* dx))

}  // namespace dtrain
