// Work on the vectors of a rank that is done in slices, so that the caller can poll the network between two of them, and
// what it has cost so far.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "framework/core/layout.h"
#include "framework/core/time.h"
#include "framework/strategies/report.h"

namespace dtrain {

// Counts of all work of a rank so far.
struct WorkDone {
  // False once an update has written a NaN or an infinity, or a vector to be compressed had one.
  bool finite = true;
  CompressionReport compression;
  // Bytes of vectors written.  The simulator charges time for them, timelines show them.
  int64_t bytes_written = 0;
  int64_t selection_slices = 0;  // slices of compressions, for timelines

  void Wrote(int64_t elements, double share = 1) {
    bytes_written +=
        std::llround(static_cast<double>(elements * static_cast<int64_t>(sizeof(float))) * share);
  }
};

// Adds the time of its scope to that of compression.  `clock` null: it measures nothing.
class CompressionTimer {
 public:
  CompressionTimer(const Clock* clock, WorkDone& done)
      : clock_(clock), done_(done), begin_(clock == nullptr ? 0 : clock->Now()) {}
  ~CompressionTimer() {
    if (clock_ != nullptr) done_.compression.time += clock_->Now() - begin_;
  }
  CompressionTimer(const CompressionTimer&) = delete;
  CompressionTimer& operator=(const CompressionTimer&) = delete;

 private:
  const Clock* const clock_;
  WorkDone& done_;
  const Nanos begin_;
};

// Calls work(slice) for the next slice of `remaining`, of at most `most` elements, and takes it away.  A ghost run skips
// the call and takes all.  `share`: bytes written / bytes of the slice.
template <class Work>
void NextSlice(Range& remaining, int64_t most, bool ghost, double share, WorkDone& done,
               const Work& work) {
  Range slice = remaining;
  if (!ghost) {
    slice.end = std::min(slice.end, slice.begin + most);
    work(slice);
  }
  remaining.begin = slice.end;
  done.Wrote(slice.size(), share);
}

}  // namespace dtrain
