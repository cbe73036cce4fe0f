// Passes over values that a selection makes, in the widest instructions of the CPU.
//
// Magnitudes are the integers of core/magnitude.h: |a| >= |b| is Magnitude(a) >= Magnitude(b).  The same
// results under every instruction set.
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

inline constexpr int kMomentLanes = 16;

// Sums over the values of a unit.  The value at place i is added in lane i mod 16, so that the bits
// do not depend on the parts in which the values come.
struct UnitMoments {
  double sum[kMomentLanes] = {};
  double squares[kMomentLanes] = {};
  double magnitudes[kMomentLanes] = {};  // of |u|
  uint32_t largest = 0;                  // a magnitude
};

// How many of values[0..n) have a magnitude of at least `least`, which is above 0.
DTRAIN_ISA_DECLARE(int64_t, CountReaching, (const float* values, int64_t n, uint32_t least))

// Those values, and first + their indices, in order; returns how many there are.  Nothing is written
// behind them.
DTRAIN_ISA_DECLARE(int64_t, TakeReaching,
                   (const float* values, int64_t n, uint32_t least, int32_t first, int32_t* places,
                    float* taken))

// Adds values[0..n), of which the first has the place `first`.
DTRAIN_ISA_DECLARE(void, AddMoments,
                   (const float* values, int64_t n, int64_t first, UnitMoments& moments))

}  // namespace dtrain
