// The forward and backward pass of a step over an Exchange, as every trainer and benchmark runs it.
#pragma once

#include <memory>
#include <string>

#include "framework/comm/transport.h"
#include "framework/core/layout.h"
#include "framework/data/dataset.h"
#include "framework/exchange/exchange.h"
#include "framework/exchange/exchange_spec.h"
#include "framework/nn/net.h"
#include "framework/runtime/results/trained_epoch.h"
#include "framework/runtime/run/pacing.h"
#include "framework/runtime/run/ready_times.h"

namespace dtrain {

// What the net is given of a batch.
NetInput InputOf(const Batch& batch, uint64_t seed);

// The net's step, in `parts` micro-batches (nn/net.h), with every gradient announced (no
// earlier than `pacer` allows, where there is one), and the weights let go, so that the update may
// happen in place.  `watch` notes when each is there; null: nobody wants to know.  Exchange::Begin
// and End are the caller's.
StepResult ForwardBackward(Net& net, Exchange& exchange, Blob weights, const Batch& batch,
                           Arena state, uint64_t seed, Pacer* pacer = nullptr, int64_t parts = 1,
                           ReadyTimes* watch = nullptr);

// What a worker says of a step with this share of a batch.  Protocols add up losses and samples,
// and the quotient shall be the mean over the terms (Batch) of the global batch.
StepReport ReportOf(const StepResult& result, const Batch& batch);

// What it found of these samples; whoever counts epochs says of which.
TrainedEpoch TrainedOn(const StepResult& result, const Batch& batch);

// An exchange for this rank: inline for one rank, on `threads` threads, with what it can in the memory
// of `device`; with an exchange thread that owns the transport for several.  What the spec borrows
// outlives it.
std::unique_ptr<Exchange> MakeExchange(const ExchangeSpec& spec, int threads, double stall_seconds,
                                       Transport& transport, const Device& device = {});

// Where the first NaN or infinity of a model is, for the message of a run that has diverged:
// "the gradient of conv1.weight", "the weights of fc3.bias", or "the loss" where both arenas are
// finite; in the order of the backward pass.  `gradients` may be null: this rank has none.
std::string FirstNotFinite(const ArenaLayout& layout, const float* weights, ConstArena gradients);

}  // namespace dtrain
