#include "layers/activations/activations_loops.h"

#include "framework/device/cpu/vector_math.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

struct Rectify {
  DTRAIN_INLINE float Forward(float x) const { return x < 0 ? 0 : x; }
  DTRAIN_INLINE float Backward(float y, float dy) const { return y > 0 ? dy : 0; }
};

struct Leak {
  float slope = 0;
  DTRAIN_INLINE float Forward(float x) const { return x > 0 ? x : slope * x; }
  DTRAIN_INLINE float Backward(float y, float dy) const { return y > 0 ? dy : slope * dy; }
};

struct Logistic {
  DTRAIN_INLINE float Forward(float x) const { return Sigmoid(x); }
  DTRAIN_INLINE float Backward(float y, float dy) const { return dy * y * (1 - y); }
};

struct HyperbolicTangent {
  DTRAIN_INLINE float Forward(float x) const { return Tanh(x); }
  DTRAIN_INLINE float Backward(float y, float dy) const { return dy * (1 - y * y); }
};

struct Swish {
  DTRAIN_INLINE float Forward(float x) const { return x * Sigmoid(x); }
  DTRAIN_INLINE float Backward(float x, float dy) const {
    const float s = Sigmoid(x);
    return dy * s * (1 + x * (1 - s));
  }
};

class ExactGelu {
 public:
  DTRAIN_INLINE float Forward(float x) const { return x * NormalOf(x).distribution; }
  DTRAIN_INLINE float Backward(float x, float dy) const {
    const Normal normal = NormalOf(x);
    return dy * (normal.distribution + x * normal.bell * kBellPeak);
  }

 private:
  static constexpr float kBellPeak = 0.398942280f;  // 1 / sqrt(2 pi), p(0)

  // Holds P(x) and exp(-x^2 / 2).
  struct Normal {
    float distribution, bell;
  };

  // Computes P(-|x|) = bell t p(t) with t = 1 / (1 + u / 2), u = |x| / sqrt 2, the form of Abramowitz and Stegun
  // 7.1.26.  The polynomial p of degree 8 was fitted to exp(u^2) erfc(u) / (2 t) on 0 <= u <= 10, with a relative error
  // of at most 4.3e-8.  The absolute error of P is at most 2e-7, its relative error for small P at most 1.2e-6.
  static DTRAIN_INLINE Normal NormalOf(float x) {
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
};

struct TanhGelu {
  static constexpr auto kLinear = static_cast<float>(kGeluLinear);
  static constexpr auto kCubic = static_cast<float>(kGeluCubic);
  DTRAIN_INLINE float Forward(float x) const { return x * Sigmoid(x * (kLinear + kCubic * x * x)); }
  DTRAIN_INLINE float Backward(float x, float dy) const {
    const float square = x * x;
    const float s = Sigmoid(x * (kLinear + kCubic * square));
    return dy * (s + x * s * (1 - s) * (kLinear + 3 * kCubic * square));
  }
};

// Calls run(f) with the struct above that computes `function`.
template <class Run>
void With(const ActivationFunction& function, const Run& run) {
  switch (function.kind) {
    case ActivationKind::kRelu:
      return run(Rectify{});
    case ActivationKind::kLeakyRelu:
      return run(Leak{function.slope});
    case ActivationKind::kSigmoid:
      return run(Logistic{});
    case ActivationKind::kTanh:
      return run(HyperbolicTangent{});
    case ActivationKind::kSilu:
      return run(Swish{});
    case ActivationKind::kGelu:
      return run(ExactGelu{});
    case ActivationKind::kTanhGelu:
      return run(TanhGelu{});
  }
}

}  // namespace

void ActivationForward(const ActivationFunction& function, const float* x, int64_t count,
                       float* y) {
  With(function, [=](auto f) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) y[i] = f.Forward(x[i]);
  });
}

void ActivationBackward(const ActivationFunction& function, const float* kept, const float* dy,
                        int64_t count, float* dx) {
  With(function, [=](auto f) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) dx[i] = f.Backward(kept[i], dy[i]);
  });
}

}  // namespace dtrain::DTRAIN_ISA_NS
