#include "layers/lrn/lrn_loops.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

// The function objects return scale^-beta.  ThreeQuarters computes it for the usual beta of 0.75 with two square roots,
// which can be vectorised.
struct ThreeQuarters {
  float operator()(float scale) const {
    const float root = __builtin_sqrtf(scale);
    return 1 / (root * __builtin_sqrtf(root));
  }
};
struct Power {
  float beta;
  float operator()(float scale) const { return __builtin_powf(scale, -beta); }
};

template <class Shrink>
void Forward(const Shrink& shrink, const float* x, int64_t count, float k, float share, float* sum,
             float* y) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    sum[i] = k + share * sum[i];
    y[i] = x[i] * shrink(sum[i]);
  }
}

template <class Shrink>
void Ratios(const Shrink& shrink, const float* x, const float* dy, const float* scale,
            int64_t count, float* ratio, float* power) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    power[i] = shrink(scale[i]);
    ratio[i] = dy[i] * x[i] * power[i] / scale[i];
  }
}

}  // namespace

void LrnSquares(const float* x, int64_t count, bool adds, float* sum) {
  if (adds) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) sum[i] += x[i] * x[i];
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) sum[i] = x[i] * x[i];
  }
}

void LrnForward(const float* x, int64_t count, float k, float share, float beta, float* sum,
                float* y) {
  if (beta == 0.75f) return Forward(ThreeQuarters{}, x, count, k, share, sum, y);
  Forward(Power{beta}, x, count, k, share, sum, y);
}

void LrnRatios(const float* x, const float* dy, const float* scale, int64_t count, float beta,
               float* ratio, float* power) {
  if (beta == 0.75f) return Ratios(ThreeQuarters{}, x, dy, scale, count, ratio, power);
  Ratios(Power{beta}, x, dy, scale, count, ratio, power);
}

void LrnBackward(const float* x, const float* dy, const float* power, const float* sum,
                 int64_t count, float factor, float* dx) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] * power[i] - factor * x[i] * sum[i];
}

}  // namespace dtrain::DTRAIN_ISA_NS
