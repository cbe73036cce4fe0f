#include "layers/gelu/gelu_loops.h"

#include "framework/device/cpu/vector_math.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

// Holds P(x) and exp(-x^2 / 2).
struct Normal {
  float distribution, bell;
};

// Computes P(-|x|) = bell t p(t) with t = 1 / (1 + u / 2), u = |x| / sqrt 2, the form of Abramowitz and Stegun 7.1.26.
// The polynomial p of degree 8 was fitted to exp(u^2) erfc(u) / (2 t) on 0 <= u <= 10, with a relative error of at most
// 4.3e-8.  The absolute error of P is at most 2e-7, its relative error for small P at most 1.2e-6.
DTRAIN_INLINE Normal NormalOf(float x) {
  const float size = x < 0 ? -x : x;
  const float bell = Exp(-0.5f * x * x);
  const float t = 1 / (1 + 0.353553391f * size);
  float p = -2.9534647e-02f;
  p = p * t + 1.4228827e-01f;
  p = p * t - 2.4360152e-01f;
  p = p * t + 1.3903530e-01f;
  p = p * t - 1.3313954e-02f;
  p = p * t + 1.01343885e-01f;
  p = p * t + 1.21551774e-01f;
  p = p * t + 1.4118767e-01f;
  p = p * t + 1.4104320e-01f;
  const float tail = bell * t * p;
  return {x < 0 ? tail : 1 - tail, bell};
}

constexpr float kBellPeak = 0.398942280f;  // 1 / sqrt(2 pi), p(0)
constexpr auto kLinear = static_cast<float>(kGeluLinear);
constexpr auto kCubic = static_cast<float>(kGeluCubic);

}  // namespace

void GeluForward(const float* x, int64_t count, float* y) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] * NormalOf(x[i]).distribution;
}

void GeluBackward(const float* x, const float* dy, int64_t count, float* dx) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const Normal normal = NormalOf(x[i]);
    dx[i] = dy[i] * (normal.distribution + x[i] * normal.bell * kBellPeak);
  }
}

void TanhGeluForward(const float* x, int64_t count, float* y) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    y[i] = x[i] * Sigmoid(x[i] * (kLinear + kCubic * x[i] * x[i]));
  }
}

void TanhGeluBackward(const float* x, const float* dy, int64_t count, float* dx) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const float square = x[i] * x[i];
    const float s = Sigmoid(x[i] * (kLinear + kCubic * square));
    dx[i] = dy[i] * (s + x[i] * s * (1 - s) * (kLinear + 3 * kCubic * square));
  }
}

}  // namespace dtrain::DTRAIN_ISA_NS
