// ReadyTimes: measures over many steps when, within a step, each layer's gradient is ready.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "framework/core/statistics.h"
#include "framework/core/time.h"
#include "framework/strategies/strategy.h"

namespace dtrain {

class ReadyTimes {
 public:
  // Keeps the times of the last `steps` steps.
  ReadyTimes(const LayerGradients& layer_gradients, size_t steps)
      : layer_gradients_(layer_gradients.ranges), most_(steps) {}

  void BeginStep() {
    start_ = WallNow();
    steps_.emplace_back();
    if (steps_.size() > most_) steps_.pop_front();
  }
  // Reports that all gradients up to the end of this range are ready.
  void Ready(Range range) {
    std::vector<double>& step = steps_.back();
    const double now = ToSeconds(WallNow() - start_);
    while (step.size() < layer_gradients_.size() &&
           layer_gradients_[step.size()].end <= range.end) {
      step.push_back(now);
    }
  }
  void Clear() { steps_.clear(); }

  size_t steps() const { return steps_.size(); }
  // Returns the median ready time of each layer's gradient in seconds since the step began, without the first `warm_up`
  // of the kept steps.
  std::vector<double> Medians(size_t warm_up = 0) const {
    std::vector<double> medians;
    for (size_t gradient = 0; gradient < layer_gradients_.size(); ++gradient) {
      std::vector<double> seconds;
      for (size_t i = warm_up; i < steps_.size(); ++i) seconds.push_back(steps_[i].at(gradient));
      medians.push_back(Median(std::move(seconds)));
    }
    return medians;
  }

 private:
  const std::vector<Range> layer_gradients_;
  const size_t most_;
  Nanos start_ = 0;
  std::deque<std::vector<double>> steps_;
};

}  // namespace dtrain
