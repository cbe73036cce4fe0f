// RunExchange runs a config's exchange over real ranks, with compute replaced by sleep.  It measures the cost of a
// step's communication without the arithmetic, which a simulation of the same scenario must predict.
//
// Vectors have their real sizes and are really sent; gradients are zeros.  The simulator's compute model
// (cluster/compute_model.h) gives the times at which gradients are announced, jitter included, so that both draw the same
// numbers.
#pragma once

#include <optional>

#include "framework/comm/transport.h"
#include "framework/core/model_profile.h"
#include "framework/results/summary.h"
#include "framework/setup/run_config.h"

namespace dtrain {

// `trace` has recorded step durations by worker, or is empty.  All ranks call it; the summary is complete on rank 0.
Summary RunExchange(const RunConfig& config, const std::optional<ModelProfile>& profile,
                    const std::vector<std::vector<double>>& trace, Transport& transport);

// Measures the times of this config's all-reduces on these ranks, which do nothing else meanwhile (T(M), as a training
// run measures it).  All ranks call it, with a strategy that uses all-reduce.
SumProfile MeasureSumsOf(const RunConfig& config, const std::optional<ModelProfile>& profile,
                         Transport& transport);

}  // namespace dtrain
