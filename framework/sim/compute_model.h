// ComputeModel: how long a worker's step takes in virtual time, and when in it each gradient is
// there.
//
//   duration = max(compute, step_seconds) x slowdown of the worker x jitter of (worker, step)
//   compute  = the profile's layer times, else its FLOPs / gflops (a third of them forward), scaled
//              from the profile's batch to the step's samples
//
// Within a step come a pause (if any), the forward pass and the backward pass, layer by layer from
// the last to the first, in the profile's proportions.  A profile that knows neither times nor
// FLOPs has layers of equal cost.  Pure: every step is a function of (seed, worker, step, samples).
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

  // Arithmetic on vectors (sums, solver steps) whose result has so many bytes.
  Nanos VectorTime(int64_t bytes) const;

 private:
  double Duration(int worker, int64_t step, int64_t samples) const;  // seconds, without the pause

  ClusterConfig cluster_;
  std::vector<double> slowdown_;  // by worker
  uint64_t seed_;
  double seconds_per_sample_ = 0;
  double forward_part_ = 0;         // of a step
  std::vector<double> ready_part_;  // as StepTiming::ready
  std::vector<std::vector<double>> trace_;
};

}  // namespace dtrain
