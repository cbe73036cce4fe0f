#include "framework/strategies/sync/advice.h"

#include <algorithm>
#include <cmath>

#include "framework/strategies/sync/merging.h"

namespace dtrain {
namespace {

std::unique_ptr<Strategy> WithDefaults(const std::string& name) {
  config::Document defaults = config::Document::Empty();
  config::Reader reader = defaults.root().Section("strategy");
  std::unique_ptr<Strategy> strategy = StrategyRegistry::Get("strategy", name).make();
  strategy->Configure(reader);
  return strategy;
}

}  // namespace

// Schedules that need no measured times come before mgwfbp, so they are preferred if the buckets
// are the same.  naive is the last, since its steps are never shorter than those of wfbp.
const std::vector<std::string>& ScheduleNames() {
  static const std::vector<std::string> names = {"wfbp", "single", "allreduce", "mgwfbp", "naive"};
  return names;
}

std::vector<Range> BucketsOfSchedule(const std::string& name,
                                     const LayerGradients& layer_gradients) {
  return WithDefaults(name)->Buckets(layer_gradients);
}

std::vector<SchedulePrediction> PredictSchedules(const LayerGradients& layer_gradients) {
  std::vector<SchedulePrediction> predictions;
  for (const std::string& name : ScheduleNames()) {
    const std::unique_ptr<Strategy> strategy = WithDefaults(name);
    const std::vector<Range> buckets = strategy->Buckets(layer_gradients);
    const MergeStart start = strategy->Overlaps() ? MergeStart::kReady : MergeStart::kAfterBackward;
    predictions.push_back({name, buckets, PredictStep(layer_gradients, buckets, start)});
  }
  return predictions;
}

bool IsBetterSchedule(double seconds, size_t buckets, double other_seconds, size_t other_buckets) {
  if (std::abs(seconds - other_seconds) > 1e-9 * seconds) return seconds < other_seconds;
  return buckets < other_buckets;
}

const SchedulePrediction& BestSchedule(const std::vector<SchedulePrediction>& predictions) {
  return *std::min_element(predictions.begin(), predictions.end(),
                           [](const SchedulePrediction& a, const SchedulePrediction& b) {
                             return IsBetterSchedule(a.seconds, a.buckets.size(), b.seconds,
                                                     b.buckets.size());
                           });
}

}  // namespace dtrain
