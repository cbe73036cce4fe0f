// Defines exp, tanh and the logistic function for loops that the compiler vectorises, in sources that end in _isa.cc
// (see simd.h).  They have no branch, call or table, and give the same bits on every instruction set.
//
// Relative errors below 3e-7 (tests/kernels).  A NaN stays a NaN.
#pragma once

#include <cstdint>

#include "framework/device/cpu/simd.h"

namespace dtrain::DTRAIN_ISA_NS {

// Represents exp(x) = scale * (1 + rest), with scale a power of two and |rest| < 0.42.
struct SplitExp {
  float scale, rest;
};

// REQUIRES: x in [-87, 88].  x = n ln 2 + r; the polynomial for exp(r) - 1 is that of Cephes' expf (Moshier, 1989).
DTRAIN_INLINE SplitExp SplitExpOf(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
  const float shifted = x * 1.44269504088896341f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const int32_t whole = __builtin_bit_cast(int32_t, shifted) - __builtin_bit_cast(int32_t, kRound);
  const auto bits = static_cast<uint32_t>(whole + 127) << 23;
  return {__builtin_bit_cast(float, bits), p * (r * r) + r};
}

DTRAIN_INLINE float Clamp(float x, float low, float high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

DTRAIN_INLINE float Exp(float x) {
  const SplitExp e = SplitExpOf(Clamp(x, -87.0f, 88.0f));
  return e.scale * e.rest + e.scale;
}

DTRAIN_INLINE float Sigmoid(float x) { return 1 / (1 + Exp(-x)); }

// Computes from exp(2x) - 1, which is accurate for small x.
DTRAIN_INLINE float Tanh(float x) {
  const SplitExp e = SplitExpOf(Clamp(x + x, -30.0f, 30.0f));
  const float less_one = e.scale * e.rest + (e.scale - 1);
  return less_one / (less_one + 2);
}

}  // namespace dtrain::DTRAIN_ISA_NS
