#include "framework/solver/loops.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

constexpr uint32_t kExponent = 0x7f800000;  // all ones: infinity or NaN

inline uint32_t IsBad(float x) {
  return (__builtin_bit_cast(uint32_t, x) & kExponent) == kExponent ? 1u : 0u;
}

template <bool kMomentum, bool kNesterov>
bool Sgd(const SgdStep& step, int64_t count, const float* gradient, const float* w_in, float* w_out,
         float* velocity) {
  const auto [lr, momentum, weight_decay, scale, nesterov] = step;
  uint32_t bad = 0;
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const float w = w_in[i];
    float direction = scale * gradient[i] + weight_decay * w;
    if constexpr (kMomentum) {
      const float v = momentum * velocity[i] + direction;
      velocity[i] = v;
      direction = kNesterov ? direction + momentum * v : v;
    }
    const float next = w - lr * direction;
    w_out[i] = next;
    bad |= IsBad(next);
  }
  return bad == 0;
}

}  // namespace

bool SgdLoop(const SgdStep& step, int64_t count, const float* gradient, const float* w_in,
             float* w_out, float* velocity) {
  if (velocity == nullptr) return Sgd<false, false>(step, count, gradient, w_in, w_out, velocity);
  if (step.nesterov) return Sgd<true, true>(step, count, gradient, w_in, w_out, velocity);
  return Sgd<true, false>(step, count, gradient, w_in, w_out, velocity);
}

bool AdamLoop(const AdamStep& step, int64_t count, const float* gradient, const float* w_in,
              float* w_out, float* m, float* v) {
  const AdamStep s = step;
  uint32_t bad = 0;
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const float w = w_in[i];
    const float g = s.gradient_scale * gradient[i] + s.weight_decay * w;
    const float mean = s.beta1 * m[i] + s.take1 * g;
    const float square = s.beta2 * v[i] + s.take2 * g * g;
    m[i] = mean;
    v[i] = square;
    const float root = __builtin_sqrtf(square) * s.root_scale + s.epsilon;
    const float next = s.keep_weights * w - s.step_size * (mean / root);
    w_out[i] = next;
    bad |= IsBad(next);
  }
  return bad == 0;
}

double SumOfSquaresLoop(const float* x, int64_t count) {
  constexpr int kPartial = 16;
  double sum[kPartial] = {};
  const int64_t whole = count - count % kPartial;
  int64_t i = 0;
  for (; i < whole; i += kPartial) {
    for (int k = 0; k < kPartial; ++k) sum[k] += static_cast<double>(x[i + k]) * x[i + k];
  }
  for (int k = 0; i < count; ++i, ++k) sum[k] += static_cast<double>(x[i]) * x[i];
  for (int half = kPartial / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) sum[k] += sum[k + half];
  }
  return sum[0];
}

}  // namespace dtrain::DTRAIN_ISA_NS
