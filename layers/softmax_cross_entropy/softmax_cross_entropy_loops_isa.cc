#include "layers/softmax_cross_entropy/softmax_cross_entropy_loops.h"

#include "framework/device/cpu/simd_exp.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

constexpr int64_t kBlock = 32 * kLanes;  // summed in float, then added up in double

// The last values of a row, with `rest` behind them.
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
