// A run up to its first step, by one process that writes nothing (`dtrain train --dry-run`): the data are
// loaded, the start is read and checked, the plan is decided and worker 0's net is made, by what the run
// itself does it with (run_basis.h).  What would refuse the run refuses this, with the same error.
#pragma once

#include <cstdint>

#include "framework/core/execution_plan.h"
#include "framework/exchange/boundary_schedule.h"
#include "framework/runtime/results/summary.h"
#include "framework/runtime/run/run_inputs.h"
#include "framework/runtime/run/start_point.h"
#include "framework/runtime/setup/run_config.h"

namespace dtrain {

// Bytes of what worker 0's rank has all the time, its servers' among it.  On a GPU they are there.
struct RankMemory {
  int64_t weights = 0;
  int64_t gradients = 0;
  int64_t solver = 0;    // its vectors, where the rank updates the weights
  int64_t exchange = 0;  // residuals, accumulators and the like, when they are full
  int64_t activations =
      0;                // between the layers, and kernels' scratch; for training and evaluations
  int64_t batches = 0;  // that are made ready
  int64_t total() const { return weights + gradients + solver + exchange + activations + batches; }
};

// What is known of a run before its first step.
struct RunInfo {
  Summary
      summary;  // as far as the run's will say the same; `epochs` and `steps` are those of its end
  int64_t parameters = 0;
  std::string frozen;  // FrozenText
  int64_t train_samples = 0, validation_samples = 0, test_samples = 0;
  int64_t share = 0;            // samples of worker 0's usual mini-batch
  int64_t steps_per_epoch = 0;  // the last may be a smaller one
  int64_t last_step = 0;
  TrainingPosition begin;
  std::string start_file;  // the checkpoint, or the weights; "": they are drawn
  bool finished = false;   // the run has come to its end before: nothing would be done
  RankMemory memory;
  ExecutionPlan plan;
  bool buckets_open = false;  // they go by times that the run measures before its first step
};

struct DryRun {
  RunConfig config;  // with the strategy by name, unless measured times are to choose it (auto)
  RunInputs inputs;
  RunInfo info;
};

// `config`: placed on its hosts (PlaceOnHosts).  `threads`: of a rank, where nobody says how many.
DryRun MakeDryRun(const RunConfig& config, const TrainRequest& request, int threads);

}  // namespace dtrain
