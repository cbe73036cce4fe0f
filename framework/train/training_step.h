// Runs the forward and backward pass of a step over an Exchange; every trainer and benchmark uses it.
#pragma once

#include <memory>
#include <string>

#include "framework/cluster/pacing.h"
#include "framework/comm/transport.h"
#include "framework/core/layout.h"
#include "framework/data/dataset.h"
#include "framework/exchange/exchange.h"
#include "framework/exchange/exchange_spec.h"
#include "framework/nn/net.h"
#include "framework/results/trained_epoch.h"
#include "framework/train/ready_times.h"

namespace dtrain {

// Returns the net's input for this batch.
NetInput InputOf(const Batch& batch, uint64_t seed);

// Runs the net's step in `parts` micro-batches (nn/net.h).  Announces every gradient to the exchange, no earlier than
// `pacer` (may be null) allows, and releases the weights so that they can be updated in place.  `watch` (may be null)
// records when each gradient is ready.  The caller calls Exchange::Begin and End.
//
// Where the exchange takes the net's work (Exchange::steps), the step is computed during and after End, and its result
// comes later (StepResult::later).
StepResult ForwardBackward(Net& net, Exchange& exchange, Blob weights, const Batch& batch,
                           Arena state, uint64_t seed, Pacer* pacer = nullptr, int64_t parts = 1,
                           ReadyTimes* watch = nullptr);

// Returns a worker's report of a step on this share of a batch.  Protocols add up losses and samples; the loss is
// scaled so that the quotient is the mean over the terms (Batch) of the global batch.
StepReport ReportOf(const StepResult& result, const BatchCounts& batch);

// Returns the training results of these samples; the caller decides to which epoch they belong.
TrainedEpoch TrainedOn(const StepResult& result, const BatchCounts& batch);

// Makes the exchange of this rank.  With one rank it runs inline, on `threads` threads; with several, a thread of its
// own owns the transport.  It keeps vectors in the memory of `device` where it can.  What the spec borrows must outlive
// it.
std::unique_ptr<Exchange> MakeExchange(const ExchangeSpec& spec, int threads, double stall_seconds,
                                       Transport& transport, const Device& device = {});

// Returns the place of the first NaN or infinity of a model, for the message of a diverged run: "the gradient of
// conv1.weight", "the weights of fc3.bias", or "the loss" if both arenas are finite.  It searches in the order of the
// backward pass.  `gradients` may be null: this rank has none.
std::string FirstNotFinite(const ArenaLayout& layout, const float* weights, ConstArena gradients);
// Does so by what the kernels of a device have found.
std::string FirstNotFinite(const ArenaLayout& layout, const NonFinitePlace& found);

}  // namespace dtrain
