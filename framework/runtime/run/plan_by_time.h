// The buckets of a schedule that goes by time, as a run decides them: before its first step.
#pragma once

#include <optional>

#include "framework/comm/transport.h"
#include "framework/core/execution_plan.h"
#include "framework/core/model_profile.h"
#include "framework/exchange/boundary_schedule.h"
#include "framework/nn/graph.h"
#include "framework/runtime/run/step_profile.h"
#include "framework/runtime/setup/run_config.h"

namespace dtrain {

// Decides the plan's buckets by times that are measured now, or by those of `strategy.profile: FILE`
// (which has been checked); where the config leaves the strategy to it (auto), that first.  All ranks
// call it; rank 0 decides.  Returns what was measured, with rank 0's layers, for whoever wants to use
// it again.
//
// Where a stop signal comes meanwhile, the run shall end as one does that is stopped later, behind its
// next step: nothing is merged, and the plan does not count as measured, so that a resumed run
// measures.
std::optional<ModelProfile> PlanByTime(Transport& transport, const Graph& graph,
                                       const BoundarySchedule& rule, const MeasuredWorker& worker,
                                       RunConfig& config, ExecutionPlan& plan);

}  // namespace dtrain
