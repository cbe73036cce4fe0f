#include "framework/kernels/cpu/row_norm_loops.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

constexpr int kPartial = 16;  // interleaved sums, added up pairwise

// Returns the sums of both members of value(i).  It calls no inline function of a library, because device/cpu/simd.h
// forbids that here.
template <class Value>
NormSumPair Sum(int64_t count, const Value& value) {
  double first[kPartial] = {}, second[kPartial] = {};
  int64_t i = 0;
  for (; i + kPartial <= count; i += kPartial) {
    for (int k = 0; k < kPartial; ++k) {
      const NormSumPair pair = value(i + k);
      first[k] += pair.first;
      second[k] += pair.second;
    }
  }
  for (int k = 0; i < count; ++i, ++k) {
    const NormSumPair pair = value(i);
    first[k] += pair.first;
    second[k] += pair.second;
  }
  for (int half = kPartial / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) {
      first[k] += first[k + half];
      second[k] += second[k + half];
    }
  }
  return {first[0], second[0]};
}

}  // namespace

NormSumPair SumsOfValues(const float* x, int64_t count) {
  return Sum(count, [=](int64_t i) -> NormSumPair {
    const double value = x[i];
    return {value, value * value};
  });
}

NormSumPair SumsOfGradients(const float* x, const float* dy, const float* weight, int64_t count,
                            float mean) {
  if (weight == nullptr) {
    return Sum(count, [=](int64_t i) -> NormSumPair {
      const double d = dy[i];
      return {d, d * (x[i] - mean)};
    });
  }
  return Sum(count, [=](int64_t i) -> NormSumPair {
    const double d = static_cast<double>(dy[i]) * weight[i];
    return {d, d * (x[i] - mean)};
  });
}

void NormaliseRow(const float* x, int64_t count, float mean, float inverse, const float* weight,
                  const float* bias, float* y) {
  if (weight == nullptr) return NormalisePlane(x, count, mean, inverse, 0, y);
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = (x[i] - mean) * inverse * weight[i] + bias[i];
}

void NormalisePlane(const float* x, int64_t count, float mean, float scale, float bias, float* y) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = (x[i] - mean) * scale + bias;
}

void NormGradientRow(const float* x, const float* dy, const float* weight, int64_t count,
                     const NormGradient& with, float* dx) {
  const NormGradient by = with;
  if (weight == nullptr) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      dx[i] = by.scale * dy[i] - by.from_bias - (x[i] - by.mean) * by.from_scale;
    }
    return;
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    dx[i] = by.scale * (weight[i] * dy[i]) - by.from_bias - (x[i] - by.mean) * by.from_scale;
  }
}

void AddRowGradients(const float* x, const float* dy, int64_t count, float mean, float inverse,
                     double* dweight, double* dbias) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    dweight[i] += static_cast<double>(dy[i]) * ((x[i] - mean) * inverse);
    dbias[i] += dy[i];
  }
}

}  // namespace dtrain::DTRAIN_ISA_NS
