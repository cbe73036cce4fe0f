// The loops of eltwise, compiled once per instruction set (eltwise_loops_isa.cc).
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// y = a + b, then max(0, .) if `relu` (NaN stays NaN).  y may be a.
DTRAIN_ISA_DECLARE(void, SumForward,
                   (const float* a, const float* b, int64_t count, bool relu, float* y))

// da = db = dy, or 0 where y is not above 0; y null: no ReLU.  Either of da and db may be null, and
// da may be dy.
DTRAIN_ISA_DECLARE(void, SumBackward,
                   (const float* y, const float* dy, int64_t count, float* da, float* db))

}  // namespace dtrain
