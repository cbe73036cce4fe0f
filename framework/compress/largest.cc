#include "framework/compress/largest.h"

namespace dtrain {

bool LargestSelection::WantsLook() {
  if (looking_ && !largest_.Next()) {
    known_ = true;
    // If fewer than k values are not zero, all of these are chosen, and no zero.
    equals_ = largest_.bits() == 0 ? 0 : largest_.equals();
  }
  looking_ = !known_;
  return looking_;
}

void LargestSelection::Look(const float* values, Range part) {
  largest_.Count({values, static_cast<size_t>(part.size())});
}

int64_t LargestSelection::Choose(const float* values, Range part, int32_t* chosen) {
  const uint32_t least = largest_.bits();
  int64_t count = 0;
  for (int64_t i = 0; i < part.size(); ++i) {
    const uint32_t magnitude = Magnitude(values[i]);
    if (magnitude < least) continue;
    if (magnitude == least && --equals_ < 0) continue;
    chosen[count++] = static_cast<int32_t>(part.begin + i);
  }
  return count;
}

}  // namespace dtrain
