#pragma once

#include <bit>

namespace dtrain {

// The largest power of two that is not above `ranks`.
inline int PowerOfTwoWithin(int ranks) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
}

}  // namespace dtrain
