// This file is compiled once per instruction set (framework/core/isa.h); scan.h declares its functions.
#include "framework/compress/scan.h"

#if defined(DTRAIN_ISA_AVX512) || defined(DTRAIN_ISA_AVX2) || defined(DTRAIN_ISA_AVX)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace dtrain::DTRAIN_ISA_NS {
namespace {

constexpr uint32_t kMagnitude = 0x7fffffffu;

// Magnitudes have 31 bits, so they can be compared as signed integers, for which SSE2 has an instruction.  `below` is
// least - 1.
inline int32_t Reaches(float value, int32_t below) {
  return static_cast<int32_t>(__builtin_bit_cast(uint32_t, value) & kMagnitude) > below ? 1 : 0;
}

#if defined(DTRAIN_ISA_AVX512)

constexpr int64_t kBlock = 64;

inline __mmask16 MaskOf(__m512i bits, uint32_t least) {
  return _mm512_cmpge_epu32_mask(_mm512_and_si512(bits, _mm512_set1_epi32(kMagnitude)),
                                 _mm512_set1_epi32(static_cast<int32_t>(least)));
}

// Compresses in registers: compressing stores are tens of times slower on some CPUs.
inline void Append(__mmask16 mask, __m512i bits, int32_t first, int32_t* places, float* taken,
                   int64_t& count) {
  const int found = __builtin_popcount(mask);
  const __mmask16 low = static_cast<__mmask16>((1u << found) - 1);
  const __m512i indices =
      _mm512_add_epi32(_mm512_set1_epi32(first),
                       _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  _mm512_mask_storeu_epi32(places + count, low, _mm512_maskz_compress_epi32(mask, indices));
  _mm512_mask_storeu_epi32(taken + count, low, _mm512_maskz_compress_epi32(mask, bits));
  count += found;
}

inline void TakeBlock(const float* values, uint32_t least, int32_t first, int32_t* places,
                      float* taken, int64_t& count) {
  __m512i bits[4];
  __mmask16 masks[4];
  for (int k = 0; k < 4; ++k) bits[k] = _mm512_loadu_si512(values + 16 * k);
  for (int k = 0; k < 4; ++k) masks[k] = MaskOf(bits[k], least);
  if ((masks[0] | masks[1] | masks[2] | masks[3]) == 0) return;
  for (int k = 0; k < 4; ++k) {
    if (masks[k] != 0) Append(masks[k], bits[k], first + 16 * k, places, taken, count);
  }
}

#else

constexpr int64_t kBlock = 32;

#if defined(DTRAIN_ISA_AVX2)

inline uint32_t MaskOf(const float* values, uint32_t least) {
  const __m256i below = _mm256_set1_epi32(static_cast<int32_t>(least - 1));
  __m256i reach[4];
  for (int k = 0; k < 4; ++k) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + 8 * k));
    reach[k] = _mm256_cmpgt_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(kMagnitude)), below);
  }
  const __m256i any =
      _mm256_or_si256(_mm256_or_si256(reach[0], reach[1]), _mm256_or_si256(reach[2], reach[3]));
  if (_mm256_testz_si256(any, any)) return 0;
  uint32_t mask = 0;
  for (int k = 0; k < 4; ++k) {
    mask |= static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(reach[k]))) << (8 * k);
  }
  return mask;
}

#elif defined(__SSE2__)

inline uint32_t MaskOfWords(const float* values, uint32_t least) {
  const __m128i below = _mm_set1_epi32(static_cast<int32_t>(least - 1));
  __m128i reach[8], any = _mm_setzero_si128();
  for (int k = 0; k < 8; ++k) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values + 4 * k));
    reach[k] = _mm_cmpgt_epi32(_mm_and_si128(bits, _mm_set1_epi32(kMagnitude)), below);
    any = _mm_or_si128(any, reach[k]);
  }
  if (_mm_movemask_epi8(any) == 0) return 0;
  uint32_t mask = 0;
  for (int k = 0; k < 8; ++k) {
    mask |= static_cast<uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(reach[k]))) << (4 * k);
  }
  return mask;
}

#if defined(DTRAIN_ISA_AVX)

// AVX compares eight floats, but only four words.  As floats, NaN counts as reaching every number, and numbers that are
// not denormal compare alike even if denormals count as zeros.
inline uint32_t MaskOf(const float* values, uint32_t least) {
  constexpr uint32_t kNormalLeast = 0x00800000u, kInfinity = 0x7f800000u;
  if (least < kNormalLeast || least > kInfinity) return MaskOfWords(values, least);
  const __m256 bar = _mm256_set1_ps(__builtin_bit_cast(float, least));
  const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(kMagnitude));
  __m256 reach[4];
  for (int k = 0; k < 4; ++k) {
    reach[k] =
        _mm256_cmp_ps(_mm256_and_ps(_mm256_loadu_ps(values + 8 * k), magnitude), bar, _CMP_NLT_UQ);
  }
  const __m256 any =
      _mm256_or_ps(_mm256_or_ps(reach[0], reach[1]), _mm256_or_ps(reach[2], reach[3]));
  if (_mm256_movemask_ps(any) == 0) return 0;
  uint32_t mask = 0;
  for (int k = 0; k < 4; ++k) {
    mask |= static_cast<uint32_t>(_mm256_movemask_ps(reach[k])) << (8 * k);
  }
  return mask;
}

#else

inline uint32_t MaskOf(const float* values, uint32_t least) { return MaskOfWords(values, least); }

#endif

#else  // not x86-64

inline uint32_t MaskOf(const float* values, uint32_t least) {
  uint32_t mask = 0;
  for (int i = 0; i < kBlock; ++i) {
    mask |= static_cast<uint32_t>(Reaches(values[i], static_cast<int32_t>(least - 1))) << i;
  }
  return mask;
}

#endif

inline void TakeBlock(const float* values, uint32_t least, int32_t first, int32_t* places,
                      float* taken, int64_t& count) {
  for (uint32_t mask = MaskOf(values, least); mask != 0; mask &= mask - 1) {
    const int index = __builtin_ctz(mask);
    places[count] = first + index;
    taken[count++] = values[index];
  }
}

#endif

inline void AddOne(float value, int lane, UnitMoments& moments) {
  const double wide = value;
  const uint32_t magnitude = __builtin_bit_cast(uint32_t, value) & kMagnitude;
  moments.sum[lane] += wide;
  moments.squares[lane] += wide * wide;
  moments.magnitudes[lane] += __builtin_fabs(wide);
  if (magnitude > moments.largest) moments.largest = magnitude;
}

// Doubles is a register of doubles; Widen converts as many floats.
#if defined(DTRAIN_ISA_AVX512)
using Doubles = __m512d;
inline Doubles Widen(const float* values) {
  // GCC 12 warns of the unmasked version.
  return _mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(values));
}
#elif defined(DTRAIN_ISA_AVX2) || defined(DTRAIN_ISA_AVX)
using Doubles = __m256d;
inline Doubles Widen(const float* values) { return _mm256_cvtps_pd(_mm_loadu_ps(values)); }
#else
using Doubles = double __attribute__((vector_size(16)));
inline Doubles Widen(const float* values) { return Doubles{values[0], values[1]}; }
#endif
constexpr int kWidth = sizeof(Doubles) / sizeof(double);
using Longs = int64_t __attribute__((vector_size(sizeof(Doubles))));
inline Doubles Absolute(Doubles x) { return (Doubles)((Longs)x & 0x7fffffffffffffff); }

// kWordBytes is the size of a register of words.
#if defined(DTRAIN_ISA_AVX512) || defined(DTRAIN_ISA_AVX2)
constexpr int kWordBytes = sizeof(Doubles);
#else
constexpr int kWordBytes = 16;
#endif
using Words = int32_t __attribute__((vector_size(kWordBytes)));
using UnalignedWords = int32_t __attribute__((vector_size(kWordBytes), aligned(4), may_alias));

// Returns the largest magnitude of `count` times 16 values.
uint32_t LargestOf(const float* values, int64_t count) {
  constexpr int kWords = kWordBytes / sizeof(int32_t), kRegisters = kMomentLanes / kWords;
  Words largest[kRegisters] = {};
  for (; count > 0; --count, values += kMomentLanes) {
#pragma GCC unroll 4
    for (int k = 0; k < kRegisters; ++k) {
      const Words bits = *reinterpret_cast<const UnalignedWords*>(values + k * kWords);
      const Words magnitude = bits & static_cast<int32_t>(kMagnitude);
      largest[k] = magnitude > largest[k] ? magnitude : largest[k];
    }
  }
  int32_t result = 0;
  for (int k = 0; k < kMomentLanes; ++k) {
    const int32_t word = largest[k / kWords][k % kWords];
    result = word > result ? word : result;
  }
  return static_cast<uint32_t>(result);
}

// Adds `count` times 16 values, from lane 0 on.
void AddWhole(const float* values, int64_t count, UnitMoments& moments) {
  constexpr int kRegisters = kMomentLanes / kWidth;
  Doubles sum[kRegisters], squares[kRegisters], magnitudes[kRegisters];
  __builtin_memcpy(sum, moments.sum, sizeof(sum));
  __builtin_memcpy(squares, moments.squares, sizeof(squares));
  __builtin_memcpy(magnitudes, moments.magnitudes, sizeof(magnitudes));
  for (; count > 0; --count, values += kMomentLanes) {
#pragma GCC unroll 8
    for (int k = 0; k < kRegisters; ++k) {
      const Doubles wide = Widen(values + k * kWidth);
      sum[k] += wide;
      squares[k] += wide * wide;
      magnitudes[k] += Absolute(wide);
    }
  }
  __builtin_memcpy(moments.sum, sum, sizeof(sum));
  __builtin_memcpy(moments.squares, squares, sizeof(squares));
  __builtin_memcpy(moments.magnitudes, magnitudes, sizeof(magnitudes));
}

}  // namespace

int64_t CountReaching(const float* values, int64_t n, uint32_t least) {
  const int32_t below = static_cast<int32_t>(least - 1);
  int64_t count = 0;
  while (n > 0) {  // the count of a block fits 32 bits
    const int64_t block = n < (1 << 20) ? n : (1 << 20);
    int32_t found = 0;
    for (int64_t i = 0; i < block; ++i) found += Reaches(values[i], below);
    count += found;
    values += block;
    n -= block;
  }
  return count;
}

int64_t TakeReaching(const float* values, int64_t n, uint32_t least, int32_t first, int32_t* places,
                     float* taken) {
  const int32_t below = static_cast<int32_t>(least - 1);
  int64_t count = 0, i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    TakeBlock(values + i, least, first + static_cast<int32_t>(i), places, taken, count);
  }
  for (; i < n; ++i) {
    if (Reaches(values[i], below) == 0) continue;
    places[count] = first + static_cast<int32_t>(i);
    taken[count++] = values[i];
  }
  return count;
}

void AddMoments(const float* values, int64_t n, int64_t first, UnitMoments& moments) {
  int64_t i = 0;
  for (; i < n && (first + i) % kMomentLanes != 0; ++i) {
    AddOne(values[i], static_cast<int>((first + i) % kMomentLanes), moments);
  }
  while (i + kMomentLanes <= n) {  // blocks stay in the cache for the second pass
    const int64_t left = (n - i) / kMomentLanes, block = left < 256 ? left : 256;
    const uint32_t largest = LargestOf(values + i, block);
    if (largest > moments.largest) moments.largest = largest;
    AddWhole(values + i, block, moments);
    i += block * kMomentLanes;
  }
  for (int lane = 0; i < n; ++i, ++lane) AddOne(values[i], lane, moments);
}

}  // namespace dtrain::DTRAIN_ISA_NS
