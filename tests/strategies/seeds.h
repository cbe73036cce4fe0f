// What random histories draw from a seed besides themselves, and how many there are.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "framework/core/random.h"

namespace dtrain {

// DTRAIN_SEEDS, or 1000.
inline uint64_t Seeds() {
  const char* seeds = std::getenv("DTRAIN_SEEDS");
  return seeds == nullptr ? 1000 : std::strtoull(seeds, nullptr, 10);
}

class Draws {
 public:
  explicit Draws(uint64_t seed) : random_(seed, Purpose::kSelfTest) {}
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_.Below(next_++, high - low + 1));
  }
  bool Coin() { return Between(0, 1) == 1; }

 private:
  const Random random_;
  uint64_t next_ = 0;
};

}  // namespace dtrain
