// Trainer: the plain loop of a training run over an Exchange, with evaluation, checkpoints, metrics
// and the summary.
#pragma once

#include <string>

#include "framework/comm/transport.h"
#include "framework/core/error.h"
#include "framework/results/summary.h"
#include "framework/setup/run_config.h"
#include "framework/train/start_point.h"

namespace dtrain {

struct TrainResult {
  ExitCode code = ExitCode::kDone;  // kDone, kStopped or kDiverged
  Summary summary;                  // complete on rank 0
  // The run in this folder was completed before, and nothing was done.  No file was touched; its summary is in the
  // folder, not in this result.
  bool finished_before = false;
};

// Trains.  Collective, with the same config on all ranks.  One thread at a time uses `transport` until Train returns.
// A stop signal ends the run with kStopped and a checkpoint; NaN or infinity ends it with kDiverged, on all ranks at
// the same step.  Every other error is an exception on this rank alone.
TrainResult Train(const RunConfig& config, const TrainRequest& request, Transport& transport);

}  // namespace dtrain
