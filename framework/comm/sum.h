// SumInOrder: the arithmetic of every collective.
//
//   to[i] = ((from[0][i] + from[1][i]) + from[2][i]) + ...      i in [0, n), count >= 1 sources
//
// One pass over memory whatever the count.  `to` may be one of the sources, not a shifted one.  The
// same bits under every instruction set.
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

DTRAIN_ISA_DECLARE(void, SumInOrder, (float* to, const float* const* from, int count, int64_t n))

inline void SumInOrder(float* to, const float* const* from, int count, int64_t n) {
  DTRAIN_ISA_SELECT(CpuIsa(), SumInOrder)(to, from, count, n);
}

}  // namespace dtrain
