// SumInOrder: the arithmetic of every collective.
//
//   to[i] = ((from[0][i] + from[1][i]) + from[2][i]) + ...      i in [0, n), count >= 1 sources
//
// It makes one pass over memory for any count.  `to` may be equal to a source but must not partly
// overlap one.  The result has the same bits with every instruction set.
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

DTRAIN_ISA_DECLARE(void, SumInOrder, (float* to, const float* const* from, int count, int64_t n))

inline void SumInOrder(float* to, const float* const* from, int count, int64_t n) {
  DTRAIN_ISA_SELECT(CpuIsa(), SumInOrder)(to, from, count, n);
}

}  // namespace dtrain
