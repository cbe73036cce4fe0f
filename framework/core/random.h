// Counter-based random numbers: every number is a pure function of (seed, purpose, a, b, index).
//
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011, section 3.3).  There is no generator state to save, and shuffling, augmentation and dropout
// do not depend on the number of workers.  The purpose defines `a` and `b`: for kDropout the layer and (step, position
// in the global batch), for kShuffle the epoch, and so on.
//
// GPU kernels call the constexpr functions too; these compute with integers and give the same bits everywhere.
#pragma once

#include <array>
#include <cstdint>

namespace dtrain {

enum class Purpose : uint32_t {
  kInit = 1,     // a = layer index, b = parameter index; index = element
  kShuffle = 2,  // a = epoch; index = position
  kDropout = 3,  // a = layer index, b = step * 2^20 + position in the global batch; index = element
  kAugment = 4,  // a = epoch, b = sample
  kDigits = 5,   // a = split, b = sample
  kJitter = 6,   // a = worker, b = step
  kSelfTest = 7,        // benchmarks and tests
  kShare = 8,           // a = pair of ranks, b = message between them
  kTeacherForcing = 9,  // a = layer index, b = step; index = step of the decoder
  kSelection = 10,      // a = actor, b = its selection * 2^20 + unit; index = draw
  kHeldOut = 11,        // index = sample
  kLowRank = 12,  // a = first element of the parameter, b = step; index = element of its factor
};

// Philox4x32-10 itself; tests compare it with the published test vectors.
constexpr std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
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

// The functions that draw bits are constexpr, so that GPU kernels can call them.
class Random {
 public:
  // The key holds (seed, purpose, a), the counter's upper half holds b, its lower half the index.
  constexpr Random(uint64_t seed, Purpose purpose, uint64_t a = 0, uint64_t b = 0)
      : Random(Mix(Mix(Mix(seed) + static_cast<uint64_t>(purpose)) + a), b) {}

  // Returns 32 uniform bits.
  constexpr uint32_t Bits(uint64_t index) const { return Block(index / 4)[index % 4]; }
  constexpr float Uniform(uint64_t index) const {  // [0, 1), 24 bits
    return static_cast<float>(Bits(index) >> 8) * 0x1p-24f;
  }
  float Uniform(uint64_t index, float low, float high) const;
  float Normal(uint64_t index) const;  // mean 0, deviation 1 (Box-Muller on two words)
  uint64_t Below(uint64_t index, uint64_t bound) const;  // [0, bound), bound < 2^32

  // The four words of one counter value: Bits(4 * block + k) is word k.
  constexpr std::array<uint32_t, 4> Block(uint64_t block) const {
    return Philox4x32(
        {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), high_[0], high_[1]},
        {key_[0], key_[1]});
  }

  // Return Block()'s other inputs to Philox: its key, and the upper half of its counter.  Loops that compute many
  // blocks at once use them.
  constexpr std::array<uint32_t, 2> key() const { return {key_[0], key_[1]}; }
  constexpr std::array<uint32_t, 2> counter_high() const { return {high_[0], high_[1]}; }

 private:
  constexpr Random(uint64_t key, uint64_t high)
      : key_{static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)},
        high_{static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32)} {}

  // A 64-bit finaliser (the constants of MurmurHash3's fmix64): spreads keys that differ in one
  // bit.
  static constexpr uint64_t Mix(uint64_t x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdULL;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ULL;
    x ^= x >> 33;
    return x;
  }

  uint32_t key_[2];
  uint32_t high_[2];
};

}  // namespace dtrain
