#include "framework/core/random.h"

#include <cmath>

namespace dtrain {
namespace {

// A 64-bit finaliser (the constants of MurmurHash3's fmix64): spreads keys that differ in one bit.
uint64_t Mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  x ^= x >> 33;
  return x;
}

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(p0)};
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  return c;
}

// The key holds (seed, purpose, a), the counter's upper half holds b, its lower half the index.
Random::Random(uint64_t seed, Purpose purpose, uint64_t a, uint64_t b) {
  const uint64_t key = Mix(Mix(Mix(seed) + static_cast<uint64_t>(purpose)) + a);
  key_[0] = static_cast<uint32_t>(key);
  key_[1] = static_cast<uint32_t>(key >> 32);
  high_[0] = static_cast<uint32_t>(b);
  high_[1] = static_cast<uint32_t>(b >> 32);
}

std::array<uint32_t, 4> Random::Block(uint64_t block) const {
  return Philox4x32(
      {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), high_[0], high_[1]},
      {key_[0], key_[1]});
}

uint32_t Random::Bits(uint64_t index) const { return Block(index / 4)[index % 4]; }

float Random::Uniform(uint64_t index) const {
  return static_cast<float>(Bits(index) >> 8) * 0x1p-24f;
}

float Random::Uniform(uint64_t index, float low, float high) const {
  return low + (high - low) * Uniform(index);
}

float Random::Normal(uint64_t index) const {
  const std::array<uint32_t, 4> words = Block(index);
  const double radius = std::sqrt(-2.0 * std::log((words[0] + 1.0) * 0x1p-32));
  const double angle = 6.283185307179586 * (words[1] * 0x1p-32);
  return static_cast<float>(radius * std::cos(angle));
}

uint64_t Random::Below(uint64_t index, uint64_t bound) const {
  return (static_cast<uint64_t>(Bits(index)) * bound) >> 32;
}

}  // namespace dtrain
