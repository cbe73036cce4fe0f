#include "framework/sim/compute_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/sim/noise.h"

namespace dtrain {
namespace {

constexpr double kForwardPart = 1.0 / 3;  // backward: by the inputs and by the parameters

Nanos ToNanos(double seconds) { return std::llround(seconds * 1e9); }

bool KnowsTimes(const ModelProfile& profile) {
  return profile.forward_seconds() + profile.backward_seconds() > 0;
}

bool KnowsFlops(const ModelProfile& profile) {
  return std::any_of(profile.layers.begin(), profile.layers.end(),
                     [](const LayerProfile& layer) { return layer.flops > 0; });
}

struct LayerCost {
  double forward;
  double backward;
};

// In seconds for one pass of the profile's batch; without times and FLOPs, in any unit.
std::vector<LayerCost> CostsOf(const ModelProfile& profile, double gflops) {
  const bool times = KnowsTimes(profile);
  const bool flops = KnowsFlops(profile);
  std::vector<LayerCost> costs;
  for (const LayerProfile& layer : profile.layers) {
    const double cost = flops ? layer.flops / (gflops * 1e9) : 1;
    costs.push_back(times ? LayerCost{layer.forward_seconds, layer.backward_seconds}
                          : LayerCost{cost * kForwardPart, cost * (1 - kForwardPart)});
  }
  return costs;
}

}  // namespace

ComputeModel::ComputeModel(const ClusterConfig& cluster, const ModelProfile& profile, int workers,
                           uint64_t seed)
    : cluster_(cluster), slowdown_(cluster.SlowdownOf(workers)), seed_(seed) {
  const bool has_costs = KnowsTimes(profile) || KnowsFlops(profile);
  if (has_costs && profile.batch <= 0) {
    throw ConfigError("the profile of model '" + profile.model + "' has a batch of no samples",
                      "measure it again: dtrain time --profile FILE");
  }
  const std::vector<LayerCost> costs = CostsOf(profile, cluster.gflops);
  double forward = 0;
  double total = 0;
  for (const LayerCost& cost : costs) {
    forward += cost.forward;
    total += cost.forward + cost.backward;
  }
  if (has_costs) seconds_per_sample_ = total / static_cast<double>(profile.batch);
  if (total > 0) forward_part_ = forward / total;
  double done = forward;
  for (size_t layer = costs.size(); layer-- > 0;) {
    done += costs[layer].backward;
    if (profile.layers[layer].params > 0) ready_part_.push_back(std::min(1.0, done / total));
  }
}

void ComputeModel::UseTrace(std::vector<std::vector<double>> seconds) {
  DT_CHECK(seconds.size() == slowdown_.size())
      << "traces of " << seconds.size() << " workers for " << slowdown_.size();
  for (const std::vector<double>& durations : seconds) {
    DT_CHECK(!durations.empty()) << "a worker's trace is empty";
  }
  trace_ = std::move(seconds);
}

StepTiming ComputeModel::Step(int worker, int64_t step, int64_t samples) const {
  const double seconds = Duration(worker, step, samples);
  StepTiming timing;
  const bool pauses = trace_.empty() && PausesIn(cluster_.pauses.probability, seed_, worker, step);
  if (pauses) timing.pause = ToNanos(cluster_.pauses.seconds);
  timing.forward = timing.pause + ToNanos(forward_part_ * seconds);
  timing.ready.reserve(ready_part_.size());
  for (const double part : ready_part_) {
    timing.ready.push_back(timing.pause + ToNanos(part * seconds));
  }
  timing.end = timing.pause + ToNanos(seconds);
  return timing;
}

double ComputeModel::Duration(int worker, int64_t step, int64_t samples) const {
  if (!trace_.empty()) {
    const std::vector<double>& durations = trace_[worker];
    return durations[step % static_cast<int64_t>(durations.size())];
  }
  const double compute = seconds_per_sample_ * static_cast<double>(samples);
  return std::max(compute, cluster_.step_seconds) * slowdown_[worker] *
         JitterFactor(cluster_.jitter, seed_, worker, step);
}

Nanos ComputeModel::VectorTime(int64_t bytes) const {
  return std::llround(static_cast<double>(bytes) / cluster_.memory_gbyte_s);
}

}  // namespace dtrain
