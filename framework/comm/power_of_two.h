#pragma once

#include <bit>

namespace dtrain {

// Returns the largest power of two that is at most `ranks`.
inline int PowerOfTwoWithin(int ranks) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
}

}  // namespace dtrain
