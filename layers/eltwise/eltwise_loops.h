// The loops of eltwise are compiled once per instruction set (eltwise_loops_isa.cc).
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// y = a + b (SumForward) or y = a b (ProductForward), then max(0, .) if `relu`.  NaN stays NaN. y may be a.
DTRAIN_ISA_DECLARE(void, SumForward,
                   (const float* a, const float* b, int64_t count, bool relu, float* y))
DTRAIN_ISA_DECLARE(void, ProductForward,
                   (const float* a, const float* b, int64_t count, bool relu, float* y))

// Describes the next input of a maximum.
struct MaxTerm {
  const float* values;
  uint16_t place;  // index of the input, from 1
};

// y = the larger of b and a, where a is the maximum of the inputs before b; then max(0, .) if `relu`.  `first` (may be
// null) receives b.place where b is larger or the first NaN; if b is the second input, the other elements of `first`
// become 0. y may be a.
DTRAIN_ISA_DECLARE(void, MaxForward,
                   (const float* a, MaxTerm b, int64_t count, bool relu, float* y, uint16_t* first))

// dx = dy, or 0 where y <= 0; y is null if no ReLU is fused. dx may be dy.
DTRAIN_ISA_DECLARE(void, PassGradient, (const float* y, const float* dy, int64_t count, float* dx))

// dx *= x.
DTRAIN_ISA_DECLARE(void, MultiplyBy, (const float* x, int64_t count, float* dx))

// Sets dx to 0 where first differs from `place`.
DTRAIN_ISA_DECLARE(void, KeepWhereFirst,
                   (const uint16_t* first, uint16_t place, int64_t count, float* dx))

}  // namespace dtrain
