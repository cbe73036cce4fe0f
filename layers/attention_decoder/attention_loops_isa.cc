#include "layers/attention_decoder/attention_loops.h"

#include "framework/device/cpu/vector_math.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

constexpr int64_t kParts = 16;  // sums side by side, added at the end

DTRAIN_INLINE float Total(const float (&part)[kParts]) {
  float half[kParts / 2];
  for (int64_t i = 0; i < 8; ++i) half[i] = part[i] + part[i + 8];
  for (int64_t i = 0; i < 4; ++i) half[i] += half[i + 4];
  return (half[0] + half[2]) + (half[1] + half[3]);
}

// Returns the sum over i of term(i), computed as kParts interleaved sums.
template <class Term>
DTRAIN_INLINE float SumOf(int64_t count, const Term& term) {
  float part[kParts] = {};
  int64_t i = 0;
  for (; i + kParts <= count; i += kParts) {
    for (int64_t l = 0; l < kParts; ++l) part[l] += term(i + l);
  }
  for (int64_t l = 0; i + l < count; ++l) part[l] += term(i + l);
  return Total(part);
}

void Softmax(float* x, int64_t count) {
  float largest = x[0];
  for (int64_t i = 1; i < count; ++i) largest = x[i] > largest ? x[i] : largest;
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    x[i] = Exp(x[i] - largest);
    sum += x[i];
  }
  for (int64_t i = 0; i < count; ++i) x[i] /= sum;
}

}  // namespace

void Attend(const Attention& a, float* weights, float* context) {
  const float *query = a.query, *v = a.v;
  for (int64_t j = 0; j < a.length; ++j) {
    const float* key = a.keys + j * a.size;
    weights[j] = SumOf(a.size, [&](int64_t i) { return v[i] * Tanh(key[i] + query[i]); });
  }
  for (int64_t j = a.length; j < a.source; ++j) weights[j] = 0;
  if (a.length > 0) Softmax(weights, a.length);
  for (int64_t i = 0; i < a.context_size; ++i) context[i] = 0;
  for (int64_t j = 0; j < a.length; ++j) {
    const float* value = a.values + j * a.context_size;
    const float weight = weights[j];
#pragma GCC ivdep
    for (int64_t i = 0; i < a.context_size; ++i) context[i] += weight * value[i];
  }
}

void AttendBackward(const Attention& a, const float* weights, const float* dcontext, float* room,
                    float* dkeys, float* dquery, float* dv) {
  float mean = 0;
  for (int64_t j = 0; j < a.length; ++j) {
    const float* value = a.values + j * a.context_size;
    room[j] = SumOf(a.context_size, [&](int64_t i) { return dcontext[i] * value[i]; });
    mean += weights[j] * room[j];
  }
  const float *query = a.query, *v = a.v;
  for (int64_t i = 0; i < a.size; ++i) dquery[i] = 0;
  for (int64_t j = 0; j < a.length; ++j) {
    const float dscore = weights[j] * (room[j] - mean);
    const float* key = a.keys + j * a.size;
    float* dkey = dkeys + j * a.size;
#pragma GCC ivdep
    for (int64_t i = 0; i < a.size; ++i) {
      const float energy = Tanh(key[i] + query[i]);
      const float denergy = dscore * v[i] * (1 - energy * energy);
      dv[i] += dscore * energy;
      dkey[i] += denergy;
      dquery[i] += denergy;
    }
  }
}

void ValueGradients(const float* weights, const float* dcontext, int64_t stride, int64_t steps,
                    int64_t source, int64_t context_size, float* dvalues) {
  for (int64_t j = 0; j < source; ++j) {
    float* to = dvalues + j * context_size;
    for (int64_t i = 0; i < context_size; ++i) to[i] = 0;
    for (int64_t t = 0; t < steps; ++t) {
      const float weight = weights[t * source + j];
      const float* from = dcontext + t * stride;
#pragma GCC ivdep
      for (int64_t i = 0; i < context_size; ++i) to[i] += weight * from[i];
    }
  }
}

int64_t LargestOf(const float* x, int64_t count) {
  float part[kParts];
  for (int64_t l = 0; l < kParts; ++l) part[l] = x[l < count ? l : 0];
  for (int64_t i = 0; i + kParts <= count; i += kParts) {
    for (int64_t l = 0; l < kParts; ++l) part[l] = x[i + l] > part[l] ? x[i + l] : part[l];
  }
  float largest = part[0];
  for (int64_t l = 1; l < kParts; ++l) largest = part[l] > largest ? part[l] : largest;
  for (int64_t i = count - count % kParts; i < count; ++i) {
    largest = x[i] > largest ? x[i] : largest;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (x[i] == largest) return i;
  }
  return 0;  // x has a NaN; the loss becomes NaN too
}

void LogSoftmax(float* x, int64_t count) {
  const float largest = x[LargestOf(x, count)];
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += Exp(x[i] - largest);
  const auto log_sum = static_cast<float>(__builtin_log(sum));
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) x[i] = x[i] - largest - log_sum;
}

}  // namespace dtrain::DTRAIN_ISA_NS
