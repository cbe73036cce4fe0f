// The loops of eltwise, compiled once per instruction set (eltwise_loops_isa.cc).
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// y = a + b, y = a b; then max(0, .) if `relu`.  NaN stays NaN.  y may be a.
DTRAIN_ISA_DECLARE(void, SumForward,
                   (const float* a, const float* b, int64_t count, bool relu, float* y))
DTRAIN_ISA_DECLARE(void, ProductForward,
                   (const float* a, const float* b, int64_t count, bool relu, float* y))

// The next of the inputs that a maximum is taken of.
struct MaxTerm {
  const float* values;
  uint16_t place;  // among the inputs, from 1
};

// y = the larger of a, the largest so far, and b; then max(0, .) if `relu`.  first (may be null) gets b's place
// where b is larger or the first NaN, and 0 elsewhere where b is the second input.  y may be a.
DTRAIN_ISA_DECLARE(void, MaxForward,
                   (const float* a, MaxTerm b, int64_t count, bool relu, float* y, uint16_t* first))

// dx = dy, or 0 where y is not above 0; y null: no ReLU.  dx may be dy.
DTRAIN_ISA_DECLARE(void, PassGradient, (const float* y, const float* dy, int64_t count, float* dx))

// dx *= x.
DTRAIN_ISA_DECLARE(void, MultiplyBy, (const float* x, int64_t count, float* dx))

// dx = 0 where first is not `place`.
DTRAIN_ISA_DECLARE(void, KeepWhereFirst,
                   (const uint16_t* first, uint16_t place, int64_t count, float* dx))

}  // namespace dtrain
