// Prepares a run up to its first step in one process that writes nothing (`dtrain train --dry-run`): loads the data,
// reads and checks the start, decides the plan and makes worker 0's net.  It calls the functions that the run itself
// calls (run_inputs.h), so every error that would refuse the run is thrown here, too.
#pragma once

#include <cstdint>

#include "framework/core/execution_plan.h"
#include "framework/device/cpu/threads.h"
#include "framework/exchange/boundary_schedule.h"
#include "framework/results/summary.h"
#include "framework/setup/run_config.h"
#include "framework/train/run_inputs.h"
#include "framework/train/start_point.h"

namespace dtrain {

// Counts the memory that worker 0's rank holds during the whole run, in bytes, including the server if it has one.  On
// a GPU it is device memory.
struct RankMemory {
  int64_t weights = 0;
  int64_t gradients = 0;
  int64_t solver = 0;    // the solver's vectors, if this rank updates the weights
  int64_t exchange = 0;  // residuals, accumulators and the like, at their full size
  // Activations between the layers, and scratch of kernels; for training and evaluation.
  int64_t activations = 0;
  int64_t batches = 0;  // the prefetched batches
  int64_t total() const { return weights + gradients + solver + exchange + activations + batches; }
};

// The properties of a run that are known before its first step.
struct RunInfo {
  // The fields that the run's own summary will share; `epochs` and `steps` are those at its end.
  Summary summary;
  int64_t parameters = 0;
  std::string frozen;  // FrozenText
  int64_t train_samples = 0, validation_samples = 0, test_samples = 0;
  int64_t share = 0;            // samples of worker 0's usual mini-batch
  int64_t steps_per_epoch = 0;  // the last one may be smaller
  int64_t last_step = 0;
  TrainingPosition begin;
  std::string start_file;  // the checkpoint or weights file; "": the weights are drawn at random
  bool finished = false;   // the run was completed before: there is nothing to do
  RankMemory memory;
  ExecutionPlan plan;
  // The buckets depend on times that the run measures before its first step.
  bool buckets_open = false;
};

struct DryRun {
  RunConfig config;  // the strategy is named, unless measured times are to choose it (auto)
  RunInputs inputs;
  RunInfo info;
};

// `config` has been placed on its hosts (PlaceOnHosts).  `cpus` are those of its ranks.
DryRun MakeDryRun(const RunConfig& config, const TrainRequest& request,
                  const std::vector<RankCpus>& cpus);

}  // namespace dtrain
