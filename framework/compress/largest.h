// LargestSelection: the k largest magnitudes, exactly; of equal ones those at the lowest places.
// Zeros are never chosen, so there may be fewer.
//
// A radix selection on the bits of |u|, from the top: each look counts how many values have which
// next digit, among those that agree with the k-th largest so far.  Three looks at digits of 11, 10
// and 10 bits find the k-th largest magnitude; O(n), no memory that depends on n, and the parts of
// the values may come one at a time.  (KthLargest in comm/sparse_arithmetic.h does the same with values
// of several ranks, whose counts travel: it has smaller digits, and more looks.)
#pragma once

#include <array>
#include <cstdint>

#include "framework/compress/compressor.h"
#include "framework/core/magnitude.h"

namespace dtrain {

class LargestSelection : public Selection {
 public:
  explicit LargestSelection(int64_t k) : left_(k) {}

  bool WantsLook() override;
  void Look(const float* values, Range part) override;
  int64_t Choose(const float* values, Range part, int32_t* chosen) override;

 private:
  static constexpr int kDigits = 3;

  void EndLook();

  std::array<int64_t, 2048> counts_ = {};  // by digit
  int digit_ = -1;                         // which one is being counted; kDigits: all is known
  uint32_t prefix_ = 0;                    // the digits of the k-th largest that are known
  int64_t left_;  // to be chosen of those that begin with it; in the end, of those that equal it
};

}  // namespace dtrain
