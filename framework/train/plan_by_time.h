// Decides the buckets of a schedule that is planned by time, before the run's first step.
#pragma once

#include <optional>

#include "framework/comm/transport.h"
#include "framework/core/execution_plan.h"
#include "framework/core/model_profile.h"
#include "framework/exchange/boundary_schedule.h"
#include "framework/nn/graph.h"
#include "framework/setup/run_config.h"
#include "framework/train/step_profile.h"

namespace dtrain {

// Decides the plan's buckets by times that are measured now, or by those of `strategy.profile: FILE`, which the caller
// has checked.  If the config leaves the strategy open (auto), chooses it first.  Collective: rank 0 decides.  Returns
// the measurement, with rank 0's layers, so that it can be saved and used again.
//
// If a stop signal arrives during the measurement, the run ends after its next step, like a run that is stopped later:
// no buckets are merged, and the plan does not count as measured, so a resumed run measures again.
std::optional<ModelProfile> PlanByTime(Transport& transport, const Graph& graph,
                                       const BoundarySchedule& rule, const MeasuredWorker& worker,
                                       RunConfig& config, ExecutionPlan& plan);

}  // namespace dtrain
