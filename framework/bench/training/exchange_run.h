// RunExchange: a config's exchange over real ranks, with compute replaced by sleep - what a step's
// communication costs without the arithmetic, and what a simulation of the same scenario must
// predict.
//
// Vectors have their real sizes and travel for real; gradients are zeros.  When gradients are
// announced comes from the simulator's own compute model (sim/compute_model.h), jitter included, so
// that both draw the same numbers.
#pragma once

#include <optional>

#include "framework/comm/transport.h"
#include "framework/core/model_profile.h"
#include "framework/runtime/results/summary.h"
#include "framework/runtime/setup/run_config.h"

namespace dtrain {

// `trace`: recorded step durations by worker, or empty.  All ranks call it; the summary is complete
// on rank 0.
Summary RunExchange(const RunConfig& config, const std::optional<ModelProfile>& profile,
                    const std::vector<std::vector<double>>& trace, Transport& transport);

// How long sums of this config take on these ranks, which do nothing else meanwhile (T(M), as a training
// run measures it).  All ranks call it, with a strategy of all-reduces.
SumProfile MeasureSumsOf(const RunConfig& config, const std::optional<ModelProfile>& profile,
                         Transport& transport);

}  // namespace dtrain
