// KthLargest: the k-th largest magnitude (magnitude.h) of any number of floats, by a radix selection.
//
// From the top, each pass counts the values by their next digit, among those that agree with the digits found so far.
// Zeros are not counted.  It takes O(n) and memory that does not depend on n.  The values may come in parts, and the
// counts may be added over ranks that have a part each.  `kBits` are the widths of the digits, 31 or 32 bits together:
// wide digits need fewer passes, narrow ones fewer counts.
//
//   KthLargest<11, 10, 10> largest;
//   largest.Begin(k);
//   do {
//     for (each part of the values) largest.Count(part);
//   } while (largest.Next());
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "framework/core/magnitude.h"

namespace dtrain {

template <int... kBits>
class KthLargest {
 public:
  static constexpr int kDigits = sizeof...(kBits);
  static constexpr int kCounts = 1 << std::max({kBits...});

  void Begin(int64_t k) {
    left_ = k;
    digit_ = 0;
    below_ = (kBits + ...);
    bits_ = 0;
    std::fill(counts_.begin(), counts_.end(), 0);
  }

  void Count(std::span<const float> values) {
    const int shift = below_ - kWidths[digit_];
    int64_t* const counts = counts_.data();
    if (digit_ == 0) {
      for (const float value : values) {
        const uint32_t bits = Magnitude(value);
        counts[bits >> shift] += bits != 0;
      }
      return;
    }
    const int known = below_;
    const uint32_t found = bits_ >> known, mask = (1u << kWidths[digit_]) - 1;
    for (const float value : values) {
      const uint32_t bits = Magnitude(value);
      if (bits >> known == found) counts[(bits >> shift) & mask] += bits != 0;
    }
  }
  std::vector<int64_t>& counts() { return counts_; }  // of the next digit

  // Finds the next digit: the highest one for which enough values are at least as large.  Returns true if a further
  // pass is needed; it is not if all digits are known, or if fewer than k values are not zero.
  bool Next() {
    const int width = kWidths[digit_];
    int digit = (1 << width) - 1;
    while (digit > 0 && counts_[digit] < left_) left_ -= counts_[digit--];
    const bool enough = counts_[digit] >= left_;
    below_ -= width;
    bits_ |= static_cast<uint32_t>(digit) << below_;
    std::fill(counts_.begin(), counts_.end(), 0);
    return ++digit_ < kDigits && enough;
  }

  // Returns the k-th largest magnitude; 0 if fewer than k values are not zero, and more than any number if k = 0.
  uint32_t bits() const { return bits_; }
  // Returns how many of the values with exactly these bits belong to the k largest.
  int64_t equals() const { return left_; }

 private:
  static constexpr std::array<int, sizeof...(kBits)> kWidths = {kBits...};

  std::vector<int64_t> counts_ = std::vector<int64_t>(kCounts);
  int64_t left_ = 0;  // values still to find among those that begin with the digits found
  int digit_ = 0;
  int below_ = 0;  // number of bits below the digits found
  uint32_t bits_ = 0;
};

}  // namespace dtrain
