// The forward and backward pass of a step over an Exchange, as every trainer and benchmark runs it.
#pragma once

#include <memory>

#include "framework/comm/transport.h"
#include "framework/core/execution_plan.h"
#include "framework/data/dataset.h"
#include "framework/exchange/exchange.h"
#include "framework/nn/net.h"
#include "framework/runtime/run/pacing.h"
#include "framework/runtime/run/start_point.h"
#include "framework/runtime/setup/run_config.h"

namespace dtrain {

// What the net is given of a batch.
NetInput InputOf(const Batch& batch, uint64_t seed);

// The net's step, in `parts` micro-batches (micro_batches.h), with every gradient announced (no
// earlier than `pacer` allows, where there is one), and the weights let go, so that the update may
// happen in place.  Exchange::Begin and End are the caller's.
StepResult ForwardBackward(Net& net, Exchange& exchange, Blob weights, const Batch& batch,
                           float* state, uint64_t seed, Pacer* pacer = nullptr, int64_t parts = 1);

// What a worker says of a step with this share of a batch.  Protocols add up losses and samples,
// and the quotient shall be the mean over the terms (Batch) of the global batch.
StepReport ReportOf(const StepResult& result, const Batch& batch);

// Which ranks are workers and servers.
Placement PlacementOf(const RunConfig& config);

// When the run pauses; `epoch_samples` is the size of the training set.
RestRule RestRuleOf(const RunConfig& config, int64_t epoch_samples);

// The exchange of the config's strategy for this rank: inline for one rank, with an exchange thread
// that owns the transport for several.  `layout` outlives it.
std::unique_ptr<Exchange> MakeExchange(const RunConfig& config, const ArenaLayout& layout,
                                       const ExecutionPlan& plan, const StartPoint& start,
                                       const RestRule& rule, Transport& transport);

}  // namespace dtrain
