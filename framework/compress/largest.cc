#include "framework/compress/largest.h"

namespace dtrain {
namespace {

constexpr int kShift[] = {20, 10, 0};  // shift of each digit in a magnitude's 31 bits
constexpr int kBits[] = {11, 10, 10};

}  // namespace

bool LargestSelection::WantsLook() {
  if (digit_ >= 0 && digit_ < kDigits) EndLook();
  if (digit_ < kDigits) ++digit_;
  return digit_ < kDigits;
}

void LargestSelection::Look(const float* values, Range part) {
  const int shift = kShift[digit_];
  const uint32_t mask = (1u << kBits[digit_]) - 1;
  if (digit_ == 0) {
    for (int64_t i = 0; i < part.size(); ++i) {
      const uint32_t magnitude = Magnitude(values[i]);
      counts_[magnitude >> shift] += magnitude != 0;
    }
    return;
  }
  const int known = shift + kBits[digit_];
  for (int64_t i = 0; i < part.size(); ++i) {
    const uint32_t magnitude = Magnitude(values[i]);
    if (magnitude >> known == prefix_) counts_[(magnitude >> shift) & mask] += magnitude != 0;
  }
}

// Finds the next digit of the k-th largest: the highest one for which enough values are at least as large.
void LargestSelection::EndLook() {
  int64_t digit = (int64_t{1} << kBits[digit_]) - 1;
  for (; digit >= 0 && counts_[digit] < left_; --digit) left_ -= counts_[digit];
  counts_ = {};
  // Fewer than k values are not zero: all of them are chosen.
  if (digit < 0) {
    digit_ = kDigits;
    prefix_ = 0;
    left_ = 0;
    return;
  }
  prefix_ = prefix_ << kBits[digit_] | static_cast<uint32_t>(digit);
}

int64_t LargestSelection::Choose(const float* values, Range part, int32_t* chosen) {
  int64_t count = 0;
  for (int64_t i = 0; i < part.size(); ++i) {
    const uint32_t magnitude = Magnitude(values[i]);
    if (magnitude < prefix_) continue;
    if (magnitude == prefix_ && --left_ < 0) continue;
    chosen[count++] = static_cast<int32_t>(part.begin + i);
  }
  return count;
}

}  // namespace dtrain
