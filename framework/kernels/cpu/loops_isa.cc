#include "framework/kernels/cpu/loops.h"

#include "framework/device/cpu/vector_math.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

constexpr int kBlocks = 16;  // Philox blocks computed side by side
constexpr int kWords = 4 * kBlocks;

// Computes Philox4x32-10 (core/random.h) for the counters block to block + 15; word k of counter b is words[4 * b + k].
void PhiloxBlocks(const DropoutSample& sample, uint64_t block, uint32_t* words) {
  uint32_t c0[kBlocks], c1[kBlocks], c2[kBlocks], c3[kBlocks];
  for (int b = 0; b < kBlocks; ++b) {
    c0[b] = static_cast<uint32_t>(block) + static_cast<uint32_t>(b);
    c1[b] = static_cast<uint32_t>(block >> 32);
    c2[b] = sample.counter_high[0];
    c3[b] = sample.counter_high[1];
  }
  uint32_t k0 = sample.key[0], k1 = sample.key[1];
  for (int round = 0; round < 10; ++round) {
    for (int b = 0; b < kBlocks; ++b) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0[b];
      const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2[b];
      c0[b] = static_cast<uint32_t>(p1 >> 32) ^ c1[b] ^ k0;
      c1[b] = static_cast<uint32_t>(p1);
      c2[b] = static_cast<uint32_t>(p0 >> 32) ^ c3[b] ^ k1;
      c3[b] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int b = 0; b < kBlocks; ++b) {
    words[4 * b] = c0[b];
    words[4 * b + 1] = c1[b];
    words[4 * b + 2] = c2[b];
    words[4 * b + 3] = c3[b];
  }
}

}  // namespace

void SumColumns(const float* x, int64_t stride, int64_t rows, int64_t columns, bool accumulate,
                float* sum) {
  if (!accumulate) {
    for (int64_t j = 0; j < columns; ++j) sum[j] = 0;
  }
  for (int64_t row = 0; row < rows; ++row, x += stride) {
#pragma GCC ivdep
    for (int64_t j = 0; j < columns; ++j) sum[j] += x[j];
  }
}

void AddLoop(int64_t count, const float* addend, float* sum) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) sum[i] += addend[i];
}

void DropElements(const DropoutSample& sample, const float* x, int64_t count, float* y) {
  uint32_t words[kWords];
  for (int64_t begin = 0; begin < count; begin += kWords) {
    PhiloxBlocks(sample, static_cast<uint64_t>(begin) / 4, words);
    const int64_t n = count - begin < kWords ? count - begin : kWords;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      y[begin + i] = words[i] < sample.threshold ? 0 : sample.scale * x[begin + i];
    }
  }
}

void GruForward(float* row, const float* from_state, const float* state_before, int64_t hidden,
                float* state) {
  float *r = row, *z = row + hidden, *n = row + 2 * hidden, *hn = row + 3 * hidden;
  const float *hr = from_state, *hz = from_state + hidden, *from_hn = from_state + 2 * hidden;
#pragma GCC ivdep
  for (int64_t i = 0; i < hidden; ++i) {
    r[i] = Sigmoid(r[i] + hr[i]);
    z[i] = Sigmoid(z[i] + hz[i]);
    hn[i] = from_hn[i];
    n[i] = Tanh(n[i] + r[i] * hn[i]);
    state[i] = n[i] + z[i] * (state_before[i] - n[i]);
  }
}

void GruBackward(float* row, const float* state_before, int64_t hidden, float* dstate) {
  float *r = row, *z = row + hidden, *n = row + 2 * hidden, *hn = row + 3 * hidden;
#pragma GCC ivdep
  for (int64_t i = 0; i < hidden; ++i) {
    const float dh = dstate[i];
    const float dxn = dh * (1 - z[i]) * (1 - n[i] * n[i]);
    const float dxz = dh * (state_before[i] - n[i]) * z[i] * (1 - z[i]);
    const float dxr = dxn * hn[i] * r[i] * (1 - r[i]);
    dstate[i] = dh * z[i];
    hn[i] = dxn * r[i];
    n[i] = dxn;
    z[i] = dxz;
    r[i] = dxr;
  }
}

}  // namespace dtrain::DTRAIN_ISA_NS
