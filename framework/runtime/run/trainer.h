// Trainer: the plain loop of a training run over an Exchange, with evaluation, checkpoints, metrics
// and the summary.
#pragma once

#include <string>

#include "framework/comm/transport.h"
#include "framework/core/error.h"
#include "framework/runtime/results/summary.h"
#include "framework/runtime/run/start_point.h"
#include "framework/runtime/setup/run_config.h"

namespace dtrain {

struct TrainResult {
  ExitCode code = ExitCode::kDone;  // kDone, kStopped or kDiverged
  Summary summary;                  // complete on rank 0
  // There was nothing to do: the run in this folder has been completed before.  No file was touched,
  // and there is no summary but the one that lies there.
  bool finished_before = false;
};

// Trains.  All ranks call it with the same config; `transport` is used by one thread at a time
// until it returns.  A stop signal ends it with kStopped and a checkpoint; NaN or infinity with
// kDiverged, on all ranks at the same step.  Everything else that goes wrong is an exception of
// this rank alone.
TrainResult Train(const RunConfig& config, const TrainRequest& request, Transport& transport);

}  // namespace dtrain
