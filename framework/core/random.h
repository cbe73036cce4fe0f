// Counted random numbers: every number is a pure function of (seed, purpose, a, b, index).
//
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011, section 3.3).  There is no generator state to save, and shuffling, augmentation and dropout
// do not depend on the number of workers.  `a` and `b` mean what the purpose says: for kDropout the
// layer and (step, position in the global batch), for kShuffle the epoch, and so on.
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
};

class Random {
 public:
  Random(uint64_t seed, Purpose purpose, uint64_t a = 0, uint64_t b = 0);

  uint32_t Bits(uint64_t index) const;  // uniform over 32 bits
  float Uniform(uint64_t index) const;  // [0, 1), 24 bits
  float Uniform(uint64_t index, float low, float high) const;
  float Normal(uint64_t index) const;  // mean 0, deviation 1 (Box-Muller on two words)
  uint64_t Below(uint64_t index, uint64_t bound) const;  // [0, bound), bound < 2^32

  // The four words of one counter value: Bits(4 * block + k) is word k.
  std::array<uint32_t, 4> Block(uint64_t block) const;

  // What Block() gives Philox beside the block number - its key, and the upper half of its counter
  // - for loops that compute many blocks at once.
  std::array<uint32_t, 2> key() const { return {key_[0], key_[1]}; }
  std::array<uint32_t, 2> counter_high() const { return {high_[0], high_[1]}; }

 private:
  uint32_t key_[2];
  uint32_t high_[2];
};

// Philox4x32-10 itself, for the published test vectors.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

}  // namespace dtrain
