// SampledLargest chooses the k largest magnitudes, exactly as LargestSelection does, but in one pass over the values if
// a sample of them is representative.
//
// The sample gives a threshold that slightly more than k values should reach; one scan gathers those, and the k largest
// of them are chosen.  If fewer than k reach it (the sample was not representative), a second scan starts from all
// nonzero values.  The choice does not depend on the sample.
#pragma once

#include "framework/compress/scan_selection.h"

namespace dtrain {

class SampledLargest : public ScanSelection {
 public:
  SampledLargest(int64_t n, int64_t k, Isa isa = CpuIsa());

  // The sample is empty for few values.
  static constexpr int64_t kRun = 16;  // values of a run: one cache line
  static SpreadSample SampleOf(int64_t n, int64_t k);

 protected:
  Pass After(Pass done) override;

 private:
  const int64_t k_;
};

// Returns a SampledLargest or, if k is a large part of n, a LargestSelection, which then needs less memory and is no
// slower.
std::unique_ptr<Selection> SelectLargest(int64_t n, int64_t k);

}  // namespace dtrain
