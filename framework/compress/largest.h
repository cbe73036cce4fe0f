// LargestSelection chooses the k largest magnitudes, exactly; of equal ones those at the lowest places.  Zeros are
// never chosen, so there may be fewer.
//
// Three passes find the k-th largest (core/kth_largest.h), in O(n) and with memory that does not depend on n; the values
// may arrive in parts.
#pragma once

#include <cstdint>

#include "framework/compress/compressor.h"
#include "framework/core/kth_largest.h"

namespace dtrain {

class LargestSelection : public Selection {
 public:
  explicit LargestSelection(int64_t k) { largest_.Begin(k); }

  bool WantsLook() override;
  void Look(const float* values, Range part) override;
  int64_t Choose(const float* values, Range part, int32_t* chosen) override;

 private:
  KthLargest<11, 10, 10> largest_;
  bool looking_ = false;
  bool known_ = false;  // the k-th largest is known
  int64_t equals_ = 0;  // entries still to choose of those that equal it
};

}  // namespace dtrain
