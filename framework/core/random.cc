#include "framework/core/random.h"

#include <cmath>

namespace dtrain {
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
