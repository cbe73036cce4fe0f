// Vectors of sixteen 32-bit lanes for sources that end in _amx_isa.cc: the AVX-512 operations that their loops need
// beside the tiles (amx_tiles.h), and the same operations as plain loops for the emulation.
#pragma once

#include "framework/device/cpu/amx_tiles.h"

namespace dtrain::DTRAIN_ISA_NS {

#if DTRAIN_ISA_AMX

using Floats = __m512;
using Words = __m512i;  // 32 bits a lane: two bf16, or the bits of an fp32
using LaneMask = __mmask16;

DTRAIN_INLINE Floats ZeroFloats() { return _mm512_setzero_ps(); }
DTRAIN_INLINE Words ZeroWords() { return _mm512_setzero_si512(); }
DTRAIN_INLINE Floats LoadFloats(const float* from) { return _mm512_loadu_ps(from); }
DTRAIN_INLINE Words LoadWords(const void* from) { return _mm512_loadu_si512(from); }
DTRAIN_INLINE void StoreFloats(float* to, Floats v) { _mm512_storeu_ps(to, v); }
DTRAIN_INLINE void StoreWords(void* to, Words v) { _mm512_storeu_si512(to, v); }

// Lanes outside the mask are 0 when loaded, and not stored.
DTRAIN_INLINE Floats LoadFloats(LaneMask mask, const float* from) {
  return _mm512_maskz_loadu_ps(mask, from);
}
DTRAIN_INLINE void StoreFloats(LaneMask mask, float* to, Floats v) {
  _mm512_mask_storeu_ps(to, mask, v);
}

DTRAIN_INLINE Floats AsFloats(Words v) { return _mm512_castsi512_ps(v); }
DTRAIN_INLINE Floats Add(Floats a, Floats b) { return a + b; }

// Returns max(0, v), keeping NaN.
DTRAIN_INLINE Floats Relu(Floats v) {
  const __m512 zero = _mm512_setzero_ps();
  return _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, zero, _CMP_LT_OQ), zero);
}

// Returns two vectors of fp32 as bf16, rounded to nearest even, denormals to 0: the numbers of `first`, then those of
// `second`.
DTRAIN_INLINE Words ToBf16(Floats first, Floats second) {
  return (__m512i)_mm512_cvtne2ps_pbh(second, first);
}

// Returns the same numbers as pairs, (low[i], high[i]) side by side.
DTRAIN_INLINE Words Pairs(Floats low, Floats high) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, ToBf16(low, high));
}

// Number j of vector i becomes number i of vector j.
DTRAIN_INLINE void Transpose(Words (&v)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    v[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    v[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    v[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

#else

struct Floats {
  float lanes[16];
};
struct Words {
  uint32_t lanes[16];
};
using LaneMask = uint16_t;

inline Floats ZeroFloats() { return {}; }
inline Words ZeroWords() { return {}; }

inline Floats LoadFloats(const float* from) {
  Floats v;
  std::memcpy(v.lanes, from, sizeof(v));
  return v;
}
inline Words LoadWords(const void* from) {
  Words v;
  std::memcpy(v.lanes, from, sizeof(v));
  return v;
}
inline void StoreFloats(float* to, const Floats& v) { std::memcpy(to, v.lanes, sizeof(v)); }
inline void StoreWords(void* to, const Words& v) { std::memcpy(to, v.lanes, sizeof(v)); }

inline Floats LoadFloats(LaneMask mask, const float* from) {
  Floats v = {};
  for (int i = 0; i < 16; ++i) {
    if ((mask >> i & 1) != 0) v.lanes[i] = from[i];
  }
  return v;
}
inline void StoreFloats(LaneMask mask, float* to, const Floats& v) {
  for (int i = 0; i < 16; ++i) {
    if ((mask >> i & 1) != 0) to[i] = v.lanes[i];
  }
}

inline Floats AsFloats(const Words& v) {
  Floats same;
  std::memcpy(same.lanes, v.lanes, sizeof(v));
  return same;
}

inline Floats Add(Floats a, const Floats& b) {
  for (int i = 0; i < 16; ++i) a.lanes[i] += b.lanes[i];
  return a;
}

inline Floats Relu(Floats v) {
  for (float& lane : v.lanes) lane = lane < 0 ? 0 : lane;
  return v;
}

inline uint32_t Bf16Of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t exponent = bits >> 23 & 0xff, fraction = bits & 0x7fffff;
  if (exponent == 0) return (bits & 0x80000000u) >> 16;
  if (exponent == 0xff && fraction != 0) return bits >> 16 | 0x40;  // a quiet NaN
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

inline Words ToBf16(const Floats& first, const Floats& second) {
  Words v = {};
  for (int i = 0; i < 16; ++i) {
    v.lanes[i / 2] |= Bf16Of(first.lanes[i]) << 16 * (i % 2);
    v.lanes[8 + i / 2] |= Bf16Of(second.lanes[i]) << 16 * (i % 2);
  }
  return v;
}

inline Words Pairs(const Floats& low, const Floats& high) {
  Words v;
  for (int i = 0; i < 16; ++i) v.lanes[i] = Bf16Of(low.lanes[i]) | Bf16Of(high.lanes[i]) << 16;
  return v;
}

inline void Transpose(Words (&v)[16]) {
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < i; ++j) {
      const uint32_t kept = v[i].lanes[j];
      v[i].lanes[j] = v[j].lanes[i];
      v[j].lanes[i] = kept;
    }
  }
}

#endif

}  // namespace dtrain::DTRAIN_ISA_NS
