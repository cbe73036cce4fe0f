// This file is compiled once per instruction set (framework/core/isa.h); plain_read.h declares its function.
#include "framework/bench/selection/plain_read.h"

namespace dtrain::DTRAIN_ISA_NS {

// A register of the set.
#if defined(DTRAIN_ISA_AVX512)
constexpr int kBytes = 64;
#elif defined(DTRAIN_ISA_AVX2)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
using Vector = uint32_t __attribute__((vector_size(kBytes)));
using UnalignedVector = uint32_t __attribute__((vector_size(kBytes), aligned(4), may_alias));

uint32_t PlainRead(const float* values, int64_t n) {
  constexpr int64_t kWidth = kBytes / sizeof(float);
  Vector all[4] = {};
  int64_t i = 0;
  for (; i + 4 * kWidth <= n; i += 4 * kWidth) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      all[k] ^= *reinterpret_cast<const UnalignedVector*>(values + i + k * kWidth);
    }
  }
  const Vector sum = (all[0] ^ all[1]) ^ (all[2] ^ all[3]);
  uint32_t result = 0;
  for (int64_t k = 0; k < kWidth; ++k) result ^= sum[k];
  for (; i < n; ++i) result ^= __builtin_bit_cast(uint32_t, values[i]);
  return result;
}

}  // namespace dtrain::DTRAIN_ISA_NS
