// ComputeModel: computes how long a worker's step takes in virtual time, and when in it each gradient is ready.
//
//   duration = max(compute, step_seconds) x slowdown of the worker x jitter of (worker, step)
//   compute  = the profile's layer times, else its FLOPs / gflops (a third of them forward), scaled
//              from the profile's batch to the step's samples; at least until the last gradient is
//              ready, if that was measured
//
// A step consists of a pause (if any), the forward pass, and the backward pass, layer by layer from the last to the
// first, in the profile's proportions.  A gradient is ready at its measured time (LayerProfile::ready_seconds), else
// when the backward pass of its layer ends.  In a profile without times and FLOPs, all layers cost the same.  The model
// is pure: every step is a function of (seed, worker, step, samples).
#pragma once

#include <cstdint>
#include <vector>

#include "framework/cluster/cluster_config.h"
#include "framework/core/model_profile.h"
#include "framework/core/time.h"

namespace dtrain {

// Holds times within a step, counted from its beginning.
struct StepTiming {
  Nanos pause = 0;    // end of the pause
  Nanos forward = 0;  // end of the forward pass
  // Holds the ready times of the gradients of the layers with parameters, in the order of the backward pass (and of the
  // gradient arena).
  std::vector<Nanos> ready;
  Nanos end = 0;
};

class ComputeModel {
 public:
  // Throws ConfigError if the slowdown factors do not fit the workers, or if the profile has layer costs for a batch of
  // no samples.
  ComputeModel(const ClusterConfig& cluster, const ModelProfile& profile, int workers,
               uint64_t seed);

  // Uses recorded step durations in seconds, a list for each worker, in their order and then from the beginning again.
  // They replace everything described above except the proportions.
  void UseTrace(std::vector<std::vector<double>> seconds);

  StepTiming Step(int worker, int64_t step, int64_t samples) const;

  // Returns StepTiming::ready of a step that takes `seconds`, without the pause and not rounded.
  std::vector<double> ReadyIn(double seconds) const;
  // Returns the seconds of a step of the worker without jitter.
  double UsualSeconds(int worker, int64_t samples) const;

  // Returns the time of vector arithmetic (sums, solver steps) whose result has so many bytes.
  Nanos VectorTime(int64_t bytes) const;

 private:
  // Returns the seconds of a step, not counting the pause.
  double Duration(int worker, int64_t step, int64_t samples) const;

  ClusterConfig cluster_;
  std::vector<double> slowdown_;  // by worker
  uint64_t seed_;
  bool has_costs_ = false;
  double batch_ = 1;  // samples of the pass for which the following times hold
  // Seconds of the whole pass; without costs, in any unit, as the next two.
  double whole_ = 0;
  double forward_ = 0;         // end of the forward pass
  std::vector<double> ready_;  // as StepTiming::ready
  std::vector<std::vector<double>> trace_;
};

// Returns when each gradient is ready at the slowest worker, in seconds since the step began.  The step has neither
// jitter nor pauses; `samples` gives each worker's samples.
std::vector<double> UsualReady(const ClusterConfig& cluster, const ModelProfile& profile,
                               const std::vector<int64_t>& samples);

}  // namespace dtrain
