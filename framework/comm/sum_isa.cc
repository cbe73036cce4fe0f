// Compiled once per instruction set (framework/core/isa.h); reached through sum.h.
#include <cstdint>

#include "framework/device/cpu/simd.h"

namespace dtrain::DTRAIN_ISA_NS {

void SumInOrder(float* to, const float* const* from, int count, int64_t n) {
  constexpr int kVectors =
      4;  // in registers at a time, so that additions need not wait for one another
  constexpr int64_t kStep = int64_t{kVectors} * kLanes;
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    Vec sums[kVectors];
    for (int v = 0; v < kVectors; ++v) sums[v] = Load(from[0] + i + v * kLanes);
    for (int k = 1; k < count; ++k) {
      for (int v = 0; v < kVectors; ++v) sums[v] += Load(from[k] + i + v * kLanes);
    }
    for (int v = 0; v < kVectors; ++v) Store(to + i + v * kLanes, sums[v]);
  }
  for (; i < n; ++i) {
    float sum = from[0][i];
    for (int k = 1; k < count; ++k) sum += from[k][i];
    to[i] = sum;
  }
}

}  // namespace dtrain::DTRAIN_ISA_NS
