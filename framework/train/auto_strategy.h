// Resolves `strategy.name: auto` to a schedule's name.  From then on the run has a strategy by name in its config,
// plan, checkpoints and summary.
#pragma once

#include <string>

#include "framework/comm/transport.h"
#include "framework/setup/run_config.h"
#include "framework/train/start_point.h"

namespace dtrain {

// Returns `config` with this schedule as its strategy.  The key `profile` keeps its value if the schedule has it.
RunConfig WithSchedule(const RunConfig& config, const std::string& name);

// Resolves `auto` as far as this needs no measurement: a resumed run keeps the schedule of its checkpoint, a run with
// `plan: FILE` takes the file's, and if nothing is planned by time every schedule is as good as another.  Otherwise,
// and for a config that names a strategy, returns `config` itself.  Collective: all ranks get the same result.
RunConfig ResolveAutoStrategy(const RunConfig& config, const TrainRequest& request,
                              Transport& transport);

// Chooses the schedule by measured times and prints one line with the reason.  Collective: rank 0's `layer_gradients`
// decide, and all ranks get the same result.
RunConfig ResolveAutoStrategy(const RunConfig& config, const LayerGradients& layer_gradients,
                              Transport& transport);

}  // namespace dtrain
