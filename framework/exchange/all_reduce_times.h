// AllReduceTimes: writes to a rank's timeline how long its all-reduces take.
//
// The collective runs one all-reduce at a time.  The time of an all-reduce begins with the request,
// or with the end of the all-reduce before if that is later, and ends when the sum is complete.  It
// includes waiting for ranks that made their request later.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "framework/core/time.h"
#include "framework/exchange/rank_timeline.h"

namespace dtrain {

class AllReduceTimes {
 public:
  // Both are borrowed.
  AllReduceTimes(const Clock* clock, RankTimeline* timeline) : clock_(clock), timeline_(timeline) {}

  void Asked() { asked_.push_back(clock_->Now()); }
  // Records the end of the oldest requested all-reduce.  `last`: it is the last of its step.
  void Done(bool last) {
    const Nanos now = clock_->Now();
    const Nanos begin = std::max(asked_.front(), done_);
    timeline_->Summed(begin, now, bucket_);
    asked_.pop_front();
    done_ = now;
    bucket_ = last ? 0 : bucket_ + 1;
  }

 private:
  const Clock* const clock_;
  RankTimeline* const timeline_;
  std::deque<Nanos> asked_;
  Nanos done_ = 0;
  int64_t bucket_ = 0;  // index in the step
};

}  // namespace dtrain
