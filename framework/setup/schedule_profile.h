// Reads the times from which a schedule is planned from a model profile (`strategy.profile: FILE`).
#pragma once

#include <string>

#include "framework/comm/reduce_time.h"
#include "framework/core/model_profile.h"
#include "framework/nn/graph.h"
#include "framework/setup/run_config.h"

namespace dtrain {

// Throws ConfigError, naming the difference, if this profile cannot plan the config's run: it is of another model or
// device, or has no ready times, or no T(M) for this number of workers and this all-reduce.  `source` names the
// profile.
void CheckProfile(const ModelProfile& profile, const RunConfig& config, const Graph& graph,
                  const std::string& source);
// Does the same for the file that the config names.  Does nothing if it names none, or if the run does not plan by
// time.
void CheckProfile(const RunConfig& config, const Graph& graph);

// Returns the layer gradients with their times, from a profile that has been checked.  Ready times scale with the
// samples of a worker's share and with the cluster's step_seconds and slowdown, as in a simulation (UsualReady).
LayerGradients LayerGradientsFrom(const ModelProfile& profile, const RunConfig& config);

// Returns the profile's T(M) for the config's all-reduce; empty if the profile has none.
ReduceTime MeasuredSums(const ModelProfile& profile, const RunConfig& config);

// Convert T(M) to a function, and to the form in a profile.
ReduceTime ReduceTimeOf(const ReduceTable& table);
SumProfile SumProfileOf(const ReduceTable& table, const RunConfig& config);

// The inverse of LayerGradientsFrom: writes to `profile` when each layer, in backward order, is ready.  `slowest` is
// the factor by which the slowest worker was slowed down during the measurement.
void NoteReady(const std::vector<double>& ready, double slowest, ModelProfile& profile);

}  // namespace dtrain
