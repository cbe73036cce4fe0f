// ComputeModel: how long a worker's step takes in virtual time, and when in it each gradient is
// there.
//
//   duration = max(compute, step_seconds) x slowdown of the worker x jitter of (worker, step)
//   compute  = the profile's layer times, else its FLOPs / gflops (a third of them forward), scaled
//              from the profile's batch to the step's samples; at least until the last gradient is
//              ready, where that was measured
//
// Within a step come a pause (if any), the forward pass and the backward pass, layer by layer from
// the last to the first, in the profile's proportions: gradients are there as they were when it was
// measured (LayerProfile::ready_seconds), else when the backward pass of their layer ends.  A profile
// that knows neither times nor FLOPs has layers of equal cost.  Pure: every step is a function of (seed, worker, step, samples).
#pragma once

#include <cstdint>
#include <vector>

#include "framework/core/model_profile.h"
#include "framework/core/time.h"
#include "framework/sim/cluster_config.h"

namespace dtrain {

// Offsets from the beginning of the step.
struct StepTiming {
  Nanos pause = 0;           // nothing happens until then
  Nanos forward = 0;         // end of the forward pass
  std::vector<Nanos> ready;  // when each gradient is there: the layers that have parameters, in the
                             // order of the backward pass (and of the gradient arena)
  Nanos end = 0;
};

class ComputeModel {
 public:
  // Throws ConfigError when the slowdown factors do not fit the workers, or for a profile with
  // layer costs of a batch of no samples.
  ComputeModel(const ClusterConfig& cluster, const ModelProfile& profile, int workers,
               uint64_t seed);

  // Recorded step durations in seconds, a list for each worker, taken one after the other and from
  // the beginning again.  They replace everything above but the proportions.
  void UseTrace(std::vector<std::vector<double>> seconds);

  StepTiming Step(int worker, int64_t step, int64_t samples) const;

  // StepTiming::ready of a step that takes so many seconds, without the pause and not rounded.
  std::vector<double> ReadyIn(double seconds) const;
  // What a step of the worker takes where there is no jitter.
  double UsualSeconds(int worker, int64_t samples) const;

  // Arithmetic on vectors (sums, solver steps) whose result has so many bytes.
  Nanos VectorTime(int64_t bytes) const;

 private:
  double Duration(int worker, int64_t step, int64_t samples) const;  // seconds, without the pause

  ClusterConfig cluster_;
  std::vector<double> slowdown_;  // by worker
  uint64_t seed_;
  bool has_costs_ = false;
  double batch_ = 1;           // samples of the pass that all of these are of
  double whole_ = 0;           // seconds; without costs in any unit, as the next two
  double forward_ = 0;         // when the forward pass ends
  std::vector<double> ready_;  // as StepTiming::ready
  std::vector<std::vector<double>> trace_;
};

// When each gradient is there at the slowest worker, in a step of so many samples of each worker that
// neither jitter nor pauses disturb: seconds since it began.
std::vector<double> UsualReady(const ClusterConfig& cluster, const ModelProfile& profile,
                               const std::vector<int64_t>& samples);

}  // namespace dtrain
