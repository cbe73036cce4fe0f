// SpreadSample says which of n values are in a sample: runs of consecutive values, one at some place in each of equal parts.
// It holds no places, since a sample may be large; a device computes them as well.
#pragma once

#include <cstdint>
#include <optional>

#include "framework/core/random.h"

namespace dtrain {

class SpreadSample {
 public:
  // REQUIRES: n < 2^31, count * run <= n.  With a count of 0 the sample is empty.  Random numbers say where in its part a
  // run is; without them multiples of the golden section do, which match no period of the values.
  constexpr SpreadSample(int64_t n, int64_t count, int64_t run,
                         const std::optional<Random>& random = std::nullopt)
      : count_(count),
        run_(run),
        base_(count > 0 ? n / count : 0),
        longer_(count > 0 ? n % count : 0),
        drawn_(random.has_value()),
        random_(random.value_or(Random(0, Purpose::kSelection))) {}

  constexpr int64_t count() const { return count_; }  // of the runs
  constexpr int64_t run() const { return run_; }      // values of each
  constexpr int64_t values() const { return count_ * run_; }
  // Returns where run i begins; they ascend and do not overlap.  The parts are those of SplitEvenly (core/layout.h).
  constexpr int64_t BeginOf(int64_t i) const {
    const int64_t begin = i * base_ + (i < longer_ ? i : longer_);
    const int64_t room = base_ + (i < longer_ ? 1 : 0) - run_ + 1;
    const uint32_t share =
        drawn_ ? random_.Bits(static_cast<uint64_t>(i)) : static_cast<uint32_t>(i) * 0x9E3779B9u;
    return begin + static_cast<int64_t>(uint64_t{share} * static_cast<uint64_t>(room) >> 32);
  }
  // Returns where value i of the sample is.
  constexpr int64_t PlaceOf(int64_t i) const { return BeginOf(i / run_) + i % run_; }

 private:
  int64_t count_, run_;
  int64_t base_, longer_;  // values of a part; the first parts have one more
  bool drawn_;
  Random random_;
};

}  // namespace dtrain
