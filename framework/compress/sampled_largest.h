// SampledLargest: the k largest magnitudes, exactly as LargestSelection chooses them, in one pass
// over the values where a sample of them is like the rest.
//
// The sample gives a threshold that a few more than k should reach; one scan gathers those, and the
// k largest of them are chosen.  Where fewer than k reach it (the sample was unlike the rest), a
// second scan gathers from all that is not zero.  Whatever the sample, the choice is the same.
#pragma once

#include "framework/compress/scan_selection.h"

namespace dtrain {

class SampledLargest : public ScanSelection {
 public:
  SampledLargest(int64_t n, int64_t k, Isa isa = CpuIsa());

  // The sample: so many values in a row from each of these places on, ascending; none for few values.
  static constexpr int64_t kRun = 16;  // what comes in one line of the cache
  static std::vector<int64_t> SampleRuns(int64_t n, int64_t k);

 protected:
  Pass After(Pass done) override;

 private:
  const int64_t k_;
};

// Either of the two: where much is chosen, digits are counted with less memory and no slower.
std::unique_ptr<Selection> SelectLargest(int64_t n, int64_t k);

}  // namespace dtrain
