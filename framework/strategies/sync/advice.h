// Advice: chooses a schedule of all-reduces by predicted step times.
#pragma once

#include <string>
#include <vector>

#include "framework/strategies/strategy.h"

namespace dtrain {

// Name of the strategy that chooses a schedule by these predictions.
inline constexpr char kAutoStrategy[] = "auto";

// Returns the schedules that it chooses from.  Of equal ones the first is preferred.
const std::vector<std::string>& ScheduleNames();

// Returns the buckets of one of these schedules, with default keys.
std::vector<Range> BucketsOfSchedule(const std::string& name,
                                     const LayerGradients& layer_gradients);

struct SchedulePrediction {
  std::string name;
  std::vector<Range> buckets;
  double seconds = 0;  // time of a step
};

// Predicts all of these schedules, with default keys.  `layer_gradients` must be timed.
std::vector<SchedulePrediction> PredictSchedules(const LayerGradients& layer_gradients);

// True if the first schedule has the shorter step or, if the times are equal except for rounding,
// fewer buckets.
bool IsBetterSchedule(double seconds, size_t buckets, double other_seconds, size_t other_buckets);

// Returns the best prediction, the first one of equals.
const SchedulePrediction& BestSchedule(const std::vector<SchedulePrediction>& predictions);

}  // namespace dtrain
