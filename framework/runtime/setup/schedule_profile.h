// What a schedule by time is planned from, as a model profile has it (`strategy.profile: FILE`).
#pragma once

#include <string>

#include "framework/comm/reduce_time.h"
#include "framework/core/model_profile.h"
#include "framework/nn/graph.h"
#include "framework/runtime/setup/run_config.h"

namespace dtrain {

// Throws ConfigError, saying what differs, where this profile cannot plan the config's run: it is of
// another model or device, or has no ready times, or no T(M) for this many workers and this way to sum.
// `source` names it.
void CheckProfile(const ModelProfile& profile, const RunConfig& config, const Graph& graph,
                  const std::string& source);
// The same for the file that the config names; nothing where it names none, or where nothing is
// planned by time.
void CheckProfile(const RunConfig& config, const Graph& graph);

// The gradients with their times, of a profile that has been checked.  Ready times go with the
// samples of a worker's share and with the cluster's step_seconds and slowdown, as in a simulation
// (UsualReady).
LayerGradients LayerGradientsFrom(const ModelProfile& profile, const RunConfig& config);

// How long the config's sums take as the profile has it; empty where it has no such times.
ReduceTime MeasuredSums(const ModelProfile& profile, const RunConfig& config);

// T(M) as a function, and as a profile keeps it.
ReduceTime ReduceTimeOf(const ReduceTable& table);
SumProfile SumProfileOf(const ReduceTable& table, const RunConfig& config);

// The inverse of LayerGradientsFrom, for layers in forward order: notes in `profile` when each is ready.
// `slowest`: the factor by which the slowest worker was slowed down meanwhile.
void NoteReady(const std::vector<double>& ready, double slowest, ModelProfile& profile);

}  // namespace dtrain
