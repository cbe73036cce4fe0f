#include "framework/solver/elements.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

template <SgdKind kKind>
bool Sgd(const SgdStep& given, int64_t count, const float* gradient, const float* w_in,
         float* w_out, float* velocity) {
  const SgdStep step = given;
  uint32_t bad = 0;
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    float v = 0;
    if constexpr (kKind != SgdKind::kPlain) v = velocity[i];
    const float next = SgdElement<kKind>(step, gradient[i], w_in[i], v);
    if constexpr (kKind != SgdKind::kPlain) velocity[i] = v;
    w_out[i] = next;
    bad |= NotFinite(next);
  }
  return bad == 0;
}

template <bool kMomentum>
bool RmsProp(const RmsPropStep& given, int64_t count, const float* gradient, const float* w_in,
             float* w_out, float* square, float* velocity) {
  const RmsPropStep step = given;
  uint32_t bad = 0;
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    float v = square[i], b = 0;
    if constexpr (kMomentum) b = velocity[i];
    const float next = RmsPropElement<kMomentum>(step, gradient[i], w_in[i], v, b);
    if constexpr (kMomentum) velocity[i] = b;
    square[i] = v;
    w_out[i] = next;
    bad |= NotFinite(next);
  }
  return bad == 0;
}

}  // namespace

bool SgdLoop(const SgdStep& step, int64_t count, const float* gradient, const float* w_in,
             float* w_out, float* velocity) {
  switch (step.kind) {
    case SgdKind::kPlain:
      return Sgd<SgdKind::kPlain>(step, count, gradient, w_in, w_out, velocity);
    case SgdKind::kMomentum:
      return Sgd<SgdKind::kMomentum>(step, count, gradient, w_in, w_out, velocity);
    case SgdKind::kNesterov:
      return Sgd<SgdKind::kNesterov>(step, count, gradient, w_in, w_out, velocity);
    case SgdKind::kDecay:
      return Sgd<SgdKind::kDecay>(step, count, gradient, w_in, w_out, velocity);
  }
  return false;
}

bool AdamLoop(const AdamStep& given, int64_t count, const float* gradient, const float* w_in,
              float* w_out, float* m, float* v) {
  const AdamStep step = given;
  uint32_t bad = 0;
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    float mean = m[i], square = v[i];
    const float next = AdamElement(step, gradient[i], w_in[i], mean, square);
    m[i] = mean;
    v[i] = square;
    w_out[i] = next;
    bad |= NotFinite(next);
  }
  return bad == 0;
}

bool RmsPropLoop(const RmsPropStep& step, int64_t count, const float* gradient, const float* w_in,
                 float* w_out, float* square, float* velocity) {
  if (velocity == nullptr) {
    return RmsProp<false>(step, count, gradient, w_in, w_out, square, velocity);
  }
  return RmsProp<true>(step, count, gradient, w_in, w_out, square, velocity);
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
