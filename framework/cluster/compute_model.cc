#include "framework/cluster/compute_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/cluster/noise.h"
#include "framework/core/check.h"
#include "framework/core/error.h"

namespace dtrain {
namespace {

// The backward pass has two parts: gradients of inputs and of parameters.
constexpr double kForwardPart = 1.0 / 3;

Nanos ToNanos(double seconds) { return std::llround(seconds * 1e9); }

bool KnowsTimes(const ModelProfile& profile) {
  return profile.forward_seconds() + profile.backward_seconds() > 0;
}

bool KnowsFlops(const ModelProfile& profile) {
  return std::any_of(profile.layers.begin(), profile.layers.end(),
                     [](const LayerProfile& layer) { return layer.flops > 0; });
}

// True if the ready times of all gradients are known; a run measures all of them.
bool KnowsReady(const ModelProfile& profile) {
  double last = 0;
  for (const LayerProfile& layer : profile.layers) {
    if (layer.params == 0) continue;
    if (!layer.ready_seconds) return false;
    last = std::max(last, *layer.ready_seconds);
  }
  return last > 0;
}

struct LayerCost {
  double forward;
  double backward;
};

// Returns the costs in seconds for one pass of the profile's batch; without times and FLOPs, in any unit.
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
  const bool measured = KnowsReady(profile);
  has_costs_ = measured || KnowsTimes(profile) || KnowsFlops(profile);
  if (has_costs_ && profile.batch <= 0) {
    throw ConfigError("the profile of model '" + profile.model + "' has a batch of no samples",
                      "measure it again: dtrain time --profile FILE");
  }
  if (has_costs_) batch_ = static_cast<double>(profile.batch);
  const std::vector<LayerCost> costs = CostsOf(profile, cluster.gflops);
  for (const LayerCost& cost : costs) {
    forward_ += cost.forward;
    whole_ += cost.forward + cost.backward;
  }
  double done = forward_, last = 0;
  for (size_t layer = costs.size(); layer-- > 0;) {
    done += costs[layer].backward;
    if (profile.layers[layer].params == 0) continue;
    last = measured ? std::max(last, *profile.layers[layer].ready_seconds) : done;
    ready_.push_back(last);
  }
  if (measured && !KnowsTimes(profile)) {  // measured times count more than estimates by FLOPs
    forward_ *= last / whole_;
    whole_ = 0;
  }
  whole_ = std::max(whole_, last);
  if (!ready_.empty()) forward_ = std::min(forward_, ready_.front());
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
  if (whole_ > 0) timing.forward = timing.pause + ToNanos(forward_ * (seconds / whole_));
  timing.ready.reserve(ready_.size());
  for (const double ready : ReadyIn(seconds)) {
    timing.ready.push_back(timing.pause + ToNanos(ready));
  }
  timing.end = timing.pause + ToNanos(seconds);
  return timing;
}

double ComputeModel::Duration(int worker, int64_t step, int64_t samples) const {
  if (!trace_.empty()) {
    const std::vector<double>& durations = trace_[worker];
    return durations[step % static_cast<int64_t>(durations.size())];
  }
  return UsualSeconds(worker, samples) * JitterFactor(cluster_.jitter, seed_, worker, step);
}

double ComputeModel::UsualSeconds(int worker, int64_t samples) const {
  const double compute = has_costs_ ? whole_ * (static_cast<double>(samples) / batch_) : 0;
  return std::max(compute, cluster_.step_seconds) * slowdown_[worker];
}

// In this order of operations, a step that takes the measured time has the measured ready times, to the bit.
std::vector<double> ComputeModel::ReadyIn(double seconds) const {
  std::vector<double> ready;
  const double factor = whole_ > 0 ? seconds / whole_ : 0;
  for (const double it : ready_) ready.push_back(std::min(it * factor, seconds));
  return ready;
}

Nanos ComputeModel::VectorTime(int64_t bytes) const {
  return std::llround(static_cast<double>(bytes) / cluster_.memory_gbyte_s);
}

std::vector<double> UsualReady(const ClusterConfig& cluster, const ModelProfile& profile,
                               const std::vector<int64_t>& samples) {
  const int workers = static_cast<int>(samples.size());
  const ComputeModel compute(cluster, profile, workers, 1);
  double slowest = 0;  // all workers have the same proportions
  for (int worker = 0; worker < workers; ++worker) {
    slowest = std::max(slowest, compute.UsualSeconds(worker, samples[static_cast<size_t>(worker)]));
  }
  return compute.ReadyIn(slowest);
}

}  // namespace dtrain
