// This file is compiled once per instruction set (framework/core/isa.h).  Callers use sum.h.
#include <cstdint>

namespace dtrain::DTRAIN_ISA_NS {

// kBytes is the size of a register.  The compiler would split a longer vector and move it through
// the stack, which takes three times as long.
#if defined(DTRAIN_ISA_AVX512)
constexpr int kBytes = 64;
#elif defined(DTRAIN_ISA_AVX2) || defined(DTRAIN_ISA_AVX)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
using Vector = float __attribute__((vector_size(kBytes)));
using UnalignedVector = float __attribute__((vector_size(kBytes), aligned(4), may_alias));

void SumInOrder(float* to, const float* const* from, int count, int64_t n) {
  constexpr int64_t kLanes = kBytes / static_cast<int>(sizeof(float));
  constexpr int kVectors = 4;  // vectors at a time, so that additions do not wait for one another
  int64_t i = 0;
  for (; i + kVectors * kLanes <= n; i += kVectors * kLanes) {
    const auto load = [i](const float* values, int v) -> Vector {
      return *reinterpret_cast<const UnalignedVector*>(values + i + v * kLanes);
    };
    Vector sums[kVectors];
    for (int v = 0; v < kVectors; ++v) sums[v] = load(from[0], v);
    for (int k = 1; k < count; ++k) {
      for (int v = 0; v < kVectors; ++v) sums[v] += load(from[k], v);
    }
    for (int v = 0; v < kVectors; ++v) {
      *reinterpret_cast<UnalignedVector*>(to + i + v * kLanes) = sums[v];
    }
  }
  for (; i < n; ++i) {
    float sum = from[0][i];
    for (int k = 1; k < count; ++k) sum += from[k][i];
    to[i] = sum;
  }
}

}  // namespace dtrain::DTRAIN_ISA_NS
