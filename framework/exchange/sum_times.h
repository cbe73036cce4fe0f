// SumTimes: how long the sums of the last steps have taken, as one rank saw it.
//
// The channel carries one sum at a time: one takes from when it was asked for, or from the end of the
// one before where that is later, until it is there.  That includes waiting for ranks that asked
// later, so what a sum really took is the least of all ranks.  A timeline shows them as they are.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "framework/core/time.h"
#include "framework/exchange/rank_timeline.h"

namespace dtrain {

class SumTimes {
 public:
  static constexpr size_t kSteps = 32;  // that are remembered

  // `timeline`, which may be null, gets every sum.
  SumTimes(const Clock* clock, RankTimeline* timeline) : clock_(clock), timeline_(timeline) {}

  void Asked() { asked_.push_back(clock_->Now()); }
  // The oldest one that was asked for; `last`: of its step.
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

  // Seconds, by step and bucket.
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
