// Vec is the widest float vector of one instruction set, for sources that end in _isa.cc.
//
// Such a source is compiled once per set into its own namespace (core/isa.h), so everything here is
// in that namespace as well: two sets never share an inline function.  For the same reason these
// sources include no library headers with inline code that might be emitted out of line.
// Loads and stores need no alignment.  Fma rounds once if the set has FMA, else twice.
#pragma once

#include <cstdint>

#if defined(DTRAIN_ISA_AVX512) || defined(DTRAIN_ISA_AVX2) || defined(DTRAIN_ISA_AVX)
#include "framework/device/cpu/intrinsics.h"
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#define DTRAIN_INLINE inline __attribute__((always_inline))

namespace dtrain::DTRAIN_ISA_NS {

#if defined(DTRAIN_ISA_AVX512)
inline constexpr int kLanes = 16;
inline constexpr int kRegisters = 32;
inline constexpr int kAccumulators = 28;  // registers that a tile may use; the others hold operands
#elif defined(DTRAIN_ISA_AVX2) || defined(DTRAIN_ISA_AVX)
inline constexpr int kLanes = 8;
inline constexpr int kRegisters = 16;
inline constexpr int kAccumulators = 12;
#else
inline constexpr int kLanes = 4;
inline constexpr int kRegisters = 16;
inline constexpr int kAccumulators = 12;
#endif

typedef float Vec __attribute__((vector_size(4 * kLanes)));
typedef int32_t VecInt __attribute__((vector_size(4 * kLanes)));
typedef float UnalignedVec __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

DTRAIN_INLINE Vec Load(const float* p) { return *reinterpret_cast<const UnalignedVec*>(p); }
DTRAIN_INLINE void Store(float* p, Vec v) { *reinterpret_cast<UnalignedVec*>(p) = v; }
DTRAIN_INLINE Vec Zero() { return Vec{}; }

#if defined(DTRAIN_ISA_AVX512)
DTRAIN_INLINE Vec Set1(float x) { return _mm512_set1_ps(x); }
DTRAIN_INLINE Vec Fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
#elif defined(DTRAIN_ISA_AVX2)
DTRAIN_INLINE Vec Set1(float x) { return _mm256_set1_ps(x); }
DTRAIN_INLINE Vec Fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
#else
DTRAIN_INLINE Vec Set1(float x) { return Vec{} + x; }
DTRAIN_INLINE Vec Fma(Vec a, Vec b, Vec c) { return a * b + c; }
#endif

// Keeps the compiler from moving loads from one iteration of a loop to the next: in a full register tile that costs
// moves and spills.
DTRAIN_INLINE void ReloadBarrier() { asm volatile("" ::: "memory"); }

// Stores past the caches: the memory need not be read first, which pays if it is far larger than the caches.  `p` is
// aligned to a whole Vec.  A StreamFence must follow the last one, before another thread is notified.
#if defined(DTRAIN_ISA_AVX512)
DTRAIN_INLINE void Stream(float* p, Vec v) { _mm512_stream_ps(p, v); }
#elif defined(DTRAIN_ISA_AVX2) || defined(DTRAIN_ISA_AVX)
DTRAIN_INLINE void Stream(float* p, Vec v) { _mm256_stream_ps(p, v); }
#elif defined(__SSE2__)
DTRAIN_INLINE void Stream(float* p, Vec v) { _mm_stream_ps(p, v); }
#else
DTRAIN_INLINE void Stream(float* p, Vec v) { Store(p, v); }
#endif
DTRAIN_INLINE void StreamFence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

// Returns max(0, v), keeping NaN.
DTRAIN_INLINE Vec Relu(Vec v) { return v < 0 ? Zero() : v; }

// Returns the sum of the lanes in a fixed order: the upper half is added to the lower until two lanes are left.
DTRAIN_INLINE float SumLanes(Vec v) {
#if defined(DTRAIN_ISA_AVX512)
  const auto eight = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                     __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
#else
  const auto eight = v;
#endif
#if defined(DTRAIN_ISA_AVX512) || defined(DTRAIN_ISA_AVX2) || defined(DTRAIN_ISA_AVX)
  const auto four = __builtin_shufflevector(eight, eight, 0, 1, 2, 3) +
                    __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
#else
  const auto four = eight;
#endif
  return (four[0] + four[2]) + (four[1] + four[3]);
}

}  // namespace dtrain::DTRAIN_ISA_NS
