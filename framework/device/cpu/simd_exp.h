// Exp: e^x of each lane, for sources that end in _isa.cc (simd.h).
//
// x = n ln 2 + r with |r| <= ln 2 / 2, a polynomial for e^r (Cephes expf), times 2^n.  Within two
// units in the last place of expf; exactly 1 at 0.  Below -87.3, where the result would be
// denormal, 0; above 88.3 infinity; NaN stays NaN.
#pragma once

#include "framework/device/cpu/simd.h"

namespace dtrain::DTRAIN_ISA_NS {

DTRAIN_INLINE Vec Exp(Vec x) {
  const Vec low = Set1(-87.33654f), high = Set1(88.37626f);
  Vec inside = x < low ? low : x;
  inside = inside > high ? high : inside;
  // Adding 1.5 * 2^23 rounds to a whole number, which is then in the low bits.
  const Vec shift = Set1(12582912.0f);
  const Vec shifted = Fma(inside, Set1(1.44269504f), shift);
  const Vec n = shifted - shift;
  Vec r = Fma(n, Set1(-0.693359375f), inside);
  r = Fma(n, Set1(2.12194440e-4f), r);
  Vec p = Set1(1.9875691500e-4f);
  p = Fma(p, r, Set1(1.3981999507e-3f));
  p = Fma(p, r, Set1(8.3334519073e-3f));
  p = Fma(p, r, Set1(4.1665795894e-2f));
  p = Fma(p, r, Set1(1.6666665459e-1f));
  p = Fma(p, r, Set1(5.0000001201e-1f));
  const Vec e = Fma(p, r * r, r) + 1.0f;
  const VecInt exponent = ((VecInt)shifted << 23) + 0x3f800000;
  const Vec result = e * (Vec)exponent;
  const Vec infinity = Set1(__builtin_inff());
  return x < low ? Zero() : x > high ? infinity : result;
}

}  // namespace dtrain::DTRAIN_ISA_NS
