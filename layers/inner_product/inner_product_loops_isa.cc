#include "layers/inner_product/inner_product_loops.h"

#include "framework/device/cpu/simd.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

constexpr int64_t kBlock = 16;

// A sum over more features than this is computed as a sum of partial sums, so that x stays in the L2 cache and rounding
// errors stay small.
constexpr int64_t kDepth = 512;

// A range [begin, end) of the features of a product; `first` and `last` mark the range at either end.
struct Slab {
  int64_t begin, end;
  bool first, last;
};

// Computes sum[o][v] = sum_i x w for one register tile of kVectors vectors of samples by kOutputs outputs.
template <int kVectors, int kOutputs>
DTRAIN_INLINE void SumTile(const float* const* x, const float* const* w, int64_t depth,
                           Vec (&sum)[kOutputs][kVectors]) {
  for (int o = 0; o < kOutputs; ++o) {
    for (int v = 0; v < kVectors; ++v) sum[o][v] = Zero();
  }
  for (int64_t i = 0; i < depth; ++i) {
    Vec features[kVectors];
    for (int v = 0; v < kVectors; ++v) features[v] = Load(x[v] + i * kBlock);
    for (int o = 0; o < kOutputs; ++o) {
      const Vec weight = Set1(w[o][i]);
      for (int v = 0; v < kVectors; ++v) sum[o][v] = Fma(features[v], weight, sum[o][v]);
    }
  }
}

// Returns `sum` plus the sums of earlier slabs in y and, in the last slab, applies bias and ReLU.
DTRAIN_INLINE Vec Finish(const BlockedProduct& p, const Slab& slab, int64_t o, Vec sum,
                         const float* y) {
  if (!slab.first) sum = Load(y) + sum;
  if (!slab.last) return sum;
  if (p.bias != nullptr) sum = sum + Set1(p.bias[o]);
  return p.relu ? Relu(sum) : sum;
}

template <int kVectors, int kOutputs>
DTRAIN_INLINE void Tile(const BlockedProduct& p, const Slab& slab, int64_t sample, int64_t o,
                        int outputs) {
  const float* x[kVectors];
  float* y[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    const int64_t block = (sample + v * kLanes) / kBlock;
    const int64_t lane = (sample + v * kLanes) % kBlock;
    x[v] = p.x + (block * p.in + slab.begin) * kBlock + lane;
    y[v] = p.y + (block * p.out + o) * kBlock + lane;
  }
  const float* w[kOutputs];  // beyond `outputs`: the last output again, unused
  for (int k = 0; k < kOutputs; ++k) {
    w[k] = p.w + (o + (k < outputs ? k : outputs - 1)) * p.in + slab.begin;
  }
  Vec sum[kOutputs][kVectors];
  SumTile<kVectors, kOutputs>(x, w, slab.end - slab.begin, sum);
  for (int k = 0; k < kOutputs; ++k) {
    if (k >= outputs) break;
    for (int v = 0; v < kVectors; ++v) {
      float* to = y[v] + k * kBlock;
      Store(to, Finish(p, slab, o + k, sum[k][v], to));
    }
  }
}

// Computes outputs [o_begin, o_end) for kVectors vectors of samples from `sample` on.
template <int kVectors>
void Strip(const BlockedProduct& p, const Slab& slab, int64_t sample, int64_t o_begin,
           int64_t o_end) {
  constexpr int kOutputs = kVectors == 1 ? 12 : 6;
  for (int64_t o = o_begin; o < o_end; o += kOutputs) {
    const auto outputs = static_cast<int>(o_end - o < kOutputs ? o_end - o : kOutputs);
    Tile<kVectors, kOutputs>(p, slab, sample, o, outputs);
  }
}

}  // namespace

void MultiplyBlocked(const BlockedProduct& p, int64_t o_begin, int64_t o_end) {
  constexpr int kVectors = kLanes == 16 ? 4 : 2;
  const int64_t samples = p.blocks * kBlock;
  for (int64_t i = 0; i < p.in; i += kDepth) {
    const int64_t end = i + kDepth < p.in ? i + kDepth : p.in;
    const Slab slab = {i, end, i == 0, end == p.in};
    int64_t s = 0;
    for (; s + kVectors * kLanes <= samples; s += kVectors * kLanes) {
      Strip<kVectors>(p, slab, s, o_begin, o_end);
    }
    for (; s + 2 * kLanes <= samples; s += 2 * kLanes) Strip<2>(p, slab, s, o_begin, o_end);
    if (s < samples) Strip<1>(p, slab, s, o_begin, o_end);
  }
}

void MaskAndSumRows(float* dy, const float* y, int64_t batch, int64_t out, bool accumulate,
                    float* bias_gradient) {
  if (bias_gradient != nullptr && !accumulate) {
    for (int64_t o = 0; o < out; ++o) bias_gradient[o] = 0;
  }
  for (int64_t n = 0; n < batch; ++n, dy += out) {
    if (y != nullptr) {
#pragma GCC ivdep
      for (int64_t o = 0; o < out; ++o) dy[o] = y[n * out + o] > 0 ? dy[o] : 0;
    }
    if (bias_gradient != nullptr) {
#pragma GCC ivdep
      for (int64_t o = 0; o < out; ++o) bias_gradient[o] += dy[o];
    }
  }
}

}  // namespace dtrain::DTRAIN_ISA_NS
