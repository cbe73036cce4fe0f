// Advice: which schedule of all-reduces to take, by measured times.
#pragma once

#include <string>
#include <vector>

#include "framework/strategies/strategy.h"

namespace dtrain {

// What decides on a schedule by itself, by these predictions.
inline constexpr char kAutoStrategy[] = "auto";

// What it decides between, in the order in which equal ones are preferred.
const std::vector<std::string>& ScheduleNames();

// Of one of them, with its keys' defaults.
std::vector<Range> BucketsOfSchedule(const std::string& name, const GradientPieces& pieces);

struct SchedulePrediction {
  std::string name;
  std::vector<Range> buckets;
  double seconds = 0;  // of a step
};

// Of all of them, with the keys' defaults.  The pieces are timed.
std::vector<SchedulePrediction> PredictSchedules(const GradientPieces& pieces);

// The shortest step counts; where two are equal but for rounding, the one with fewer buckets.
bool IsBetterSchedule(double seconds, size_t buckets, double other_seconds, size_t other_buckets);

// The best one, or the first of several.
const SchedulePrediction& BestSchedule(const std::vector<SchedulePrediction>& predictions);

}  // namespace dtrain
