// What becomes of `strategy.name: auto`: a run has a strategy by name from then on, in its config,
// plan, checkpoints and summary.
#pragma once

#include <string>

#include "framework/comm/transport.h"
#include "framework/runtime/run/start_point.h"
#include "framework/runtime/setup/run_config.h"

namespace dtrain {

// `config` as if it had named this schedule; `profile` and `replan` stay where it has such keys.
RunConfig WithSchedule(const RunConfig& config, const std::string& name);

// What needs no measuring: a run that is resumed goes on with the schedule of its checkpoint, one with
// `plan: FILE` takes the file's, and where nothing goes by time one is as good as the other.  Else, and for a config that names a strategy,
// `config` itself.  All ranks call it and get the same.
RunConfig ResolveAutoStrategy(const RunConfig& config, const TrainRequest& request,
                              Transport& transport);

// By measured times, with a line that says why.  The same on all ranks; rank 0's layers' gradients count.
RunConfig ResolveAutoStrategy(const RunConfig& config, const LayerGradients& layer_gradients,
                              Transport& transport);

}  // namespace dtrain
