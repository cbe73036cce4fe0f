#include "framework/kernels/cpu/loops.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

constexpr int kBlocks = 16;  // Philox blocks computed side by side
constexpr int kWords = 4 * kBlocks;

// Philox4x32-10 (core/random.h) on the counters block .. block + 15; word k of counter b is
// words[4 * b + k].
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

}  // namespace dtrain::DTRAIN_ISA_NS
