// Passes over values for selections, in the widest instructions of the CPU.
//
// Magnitudes are the integers of core/magnitude.h: |a| >= |b| is Magnitude(a) >= Magnitude(b).  The results are the
// same under every instruction set.
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

inline constexpr int kMomentLanes = 16;

// Sums over the values of a unit.  The value at place i is added to lane i mod 16, so that the bits do not depend on
// the parts in which the values arrive.
struct UnitMoments {
  double sum[kMomentLanes] = {};
  double squares[kMomentLanes] = {};
  double magnitudes[kMomentLanes] = {};  // of |u|
  uint32_t largest = 0;                  // a magnitude
};

// Returns the number of values[0..n) with a magnitude of at least `least`, which is above 0.
DTRAIN_ISA_DECLARE(int64_t, CountReaching, (const float* values, int64_t n, uint32_t least))

// Writes those values, and first + their indices, in order; returns their number.  Nothing is written beyond them.
DTRAIN_ISA_DECLARE(int64_t, TakeReaching,
                   (const float* values, int64_t n, uint32_t least, int32_t first, int32_t* places,
                    float* taken))

// Adds values[0..n); the first one's place is `first`.
DTRAIN_ISA_DECLARE(void, AddMoments,
                   (const float* values, int64_t n, int64_t first, UnitMoments& moments))

}  // namespace dtrain
