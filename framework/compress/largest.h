// LargestSelection chooses the k largest magnitudes, exactly; of equal ones those at the lowest places.  Zeros are
// never chosen, so there may be fewer.
//
// It is a radix selection on the bits of |u|, from the top: each pass counts the values by their next digit, among
// those that agree with the k-th largest so far.  Three passes with digits of 11, 10 and 10 bits find the k-th largest
// magnitude, in O(n) and with memory that does not depend on n; the values may arrive in parts. (KthLargest in
// comm/sparse_arithmetic.h does the same with values of several ranks, which exchange the counts: it has smaller digits
// and more passes.)
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
  int digit_ = -1;                         // the digit being counted; kDigits: all are known
  uint32_t prefix_ = 0;                    // known digits of the k-th largest
  // Entries still to choose of those that begin with prefix_; at the end, of those that equal it.
  int64_t left_;
};

}  // namespace dtrain
