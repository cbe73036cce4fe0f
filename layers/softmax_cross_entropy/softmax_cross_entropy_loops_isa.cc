#include "layers/softmax_cross_entropy/softmax_cross_entropy_loops.h"

#include "framework/device/cpu/simd.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

constexpr int64_t kBlock = 32 * kLanes;  // summed in float, then added up in double

// Returns the last values of a row, padded with `rest`.
DTRAIN_INLINE Vec LoadPart(const float* x, int64_t count, float rest) {
  float values[kLanes];
  for (int i = 0; i < kLanes; ++i) values[i] = i < count ? x[i] : rest;
  return Load(values);
}

DTRAIN_INLINE Vec Larger(Vec v, Vec m) { return v > m ? v : m; }

DTRAIN_INLINE float LargestOf(const float* x, int64_t count) {
  const float nothing = -__builtin_inff();
  Vec largest = Set1(nothing);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) largest = Larger(Load(x + i), largest);
  if (i < count) largest = Larger(LoadPart(x + i, count - i, nothing), largest);
  float result = largest[0];
  for (int lane = 1; lane < kLanes; ++lane) {
    result = largest[lane] > result ? largest[lane] : result;
  }
  return result;
}

// Returns e^x for each lane: x = n ln 2 + r with |r| <= ln 2 / 2, and e^x = 2^n e^r with a polynomial for e^r (Cephes
// expf).  The result is within two units in the last place of expf, and exactly 1 at 0.  It is 0 below -87.3, where it
// would be denormal, and infinity above 88.3; NaN stays NaN.
DTRAIN_INLINE Vec Exp(Vec x) {
  const Vec low = Set1(-87.33654f), high = Set1(88.37626f);
  Vec inside = x < low ? low : x;
  inside = inside > high ? high : inside;
  // Adding 1.5 * 2^23 rounds to an integer, whose value is then in the low bits.
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

}  // namespace

SoftmaxRow SoftmaxOf(const float* x, int64_t count) {
  SoftmaxRow row;
  row.largest = LargestOf(x, count);
  const Vec largest = Set1(row.largest);
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t begin = 0; begin < whole; begin += kBlock) {
    const int64_t end = begin + kBlock < whole ? begin + kBlock : whole;
    Vec sum = Zero(), logits = Zero();
    for (int64_t i = begin; i < end; i += kLanes) {
      const Vec z = Load(x + i) - largest;
      sum += Exp(z);
      logits += z;
    }
    row.sum += SumLanes(sum);
    row.logits += SumLanes(logits);
  }
  if (whole == count) return row;
  const float nothing = -__builtin_inff();
  row.sum += SumLanes(Exp(LoadPart(x + whole, count - whole, nothing) - largest));
  row.logits += SumLanes(LoadPart(x + whole, count - whole, row.largest) - largest);
  return row;
}

void SoftmaxGradient(const float* x, int64_t count, float largest, float factor, float offset,
                     float* dx) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Store(dx + i, Exp(Load(x + i) - largest) * factor - offset);
  }
  if (i == count) return;
  float rest[kLanes];
  Store(rest, Exp(LoadPart(x + i, count - i, largest) - largest) * factor - offset);
  for (int64_t k = 0; i + k < count; ++k) dx[i + k] = rest[k];
}

}  // namespace dtrain::DTRAIN_ISA_NS
