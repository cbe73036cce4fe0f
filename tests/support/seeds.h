// Random draws for histories and clusters from a seed, and the number of seeds.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <ranges>
#include <string>
#include <vector>

#include "framework/core/random.h"

namespace dtrain {

// Returns DTRAIN_SEEDS, or 1000: the number of histories or clusters of a test.
inline int64_t Seeds() {
  const char* seeds = std::getenv("DTRAIN_SEEDS");
  return seeds == nullptr ? 1000 : std::strtoll(seeds, nullptr, 10);
}

// Returns DTRAIN_FIRST_SEED, or 1.  tests/run.sh sets it from a hash of the commit, so that each commit tests other
// histories.  A failure prints its seed: DTRAIN_FIRST_SEED=SEED DTRAIN_SEEDS=1 repeats it.
inline int64_t FirstSeed() {
  const char* seed = std::getenv("DTRAIN_FIRST_SEED");
  return seed == nullptr ? 1 : std::strtoll(seed, nullptr, 10);
}

inline auto SeedRange(int64_t count) { return std::views::iota(FirstSeed(), FirstSeed() + count); }

// Each number has its own position in the seed's random stream.
class Draws {
 public:
  explicit Draws(uint64_t seed) : random_(seed, Purpose::kSelfTest) {}
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_.Below(next_++, high - low + 1));
  }
  int64_t Below(int64_t count) { return Between(0, count - 1); }
  double Real(double low, double high) { return low + (high - low) * random_.Uniform(next_++); }
  bool Coin() { return Between(0, 1) == 1; }
  std::string Of(const std::vector<std::string>& words) {
    return words[Below(static_cast<int64_t>(words.size()))];
  }

 private:
  const Random random_;
  uint64_t next_ = 0;
};

}  // namespace dtrain
