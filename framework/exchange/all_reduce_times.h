// AllReduceTimes: how long the all-reduces of the last steps took, as one rank measured them.
//
// The collective runs one all-reduce at a time.  The time of an all-reduce begins with the request,
// or with the end of the all-reduce before if that is later, and ends when the sum is complete.  It
// includes waiting for ranks that made their request later, so the minimum over the ranks is the
// best estimate of the communication itself.  A timeline shows the times as measured on each rank.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "framework/core/time.h"
#include "framework/exchange/rank_timeline.h"

namespace dtrain {

class AllReduceTimes {
 public:
  static constexpr size_t kSteps = 32;  // steps that are kept

  // Every all-reduce is also written to `timeline`, which may be null.
  AllReduceTimes(const Clock* clock, RankTimeline* timeline) : clock_(clock), timeline_(timeline) {}

  void Asked() { asked_.push_back(clock_->Now()); }
  // Records the end of the oldest requested all-reduce.  `last`: it is the last of its step.
  void Done(bool last) {
    const Nanos now = clock_->Now();
    const Nanos begin = std::max(asked_.front(), done_);
    if (timeline_ != nullptr) timeline_->Summed(begin, now, static_cast<int64_t>(step_.size()));
    step_.push_back(ToSeconds(now - begin));
    asked_.pop_front();
    done_ = now;
    if (!last) return;
    steps_.push_back(std::move(step_));
    step_.clear();
    if (steps_.size() > kSteps) steps_.pop_front();
  }
  void Clear() { steps_.clear(); }

  // Returns the seconds, indexed by step (oldest first) and bucket.
  const std::deque<std::vector<double>>& steps() const { return steps_; }

 private:
  const Clock* const clock_;
  RankTimeline* const timeline_;
  std::deque<Nanos> asked_;
  Nanos done_ = 0;
  std::vector<double> step_;
  std::deque<std::vector<double>> steps_;
};

}  // namespace dtrain
