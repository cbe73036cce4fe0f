// What a schedule that goes by time is planned from, measured before the first step.
#pragma once

#include <optional>
#include <span>

#include "framework/comm/reduce_time.h"
#include "framework/comm/transport.h"
#include "framework/core/model_profile.h"
#include "framework/data/batches.h"
#include "framework/exchange/exchange_spec.h"
#include "framework/nn/net.h"
#include "framework/runtime/run/pacing.h"
#include "framework/runtime/setup/run_config.h"

namespace dtrain {

inline constexpr int kMeasuredSteps = 20;

// A worker, to measure with.  Everything is borrowed.
struct MeasuredWorker {
  Net& net;
  Pacer& pacer;
  const Batch& batch;              // of a usual size
  std::span<const float> weights;  // of the model
  std::span<const float> state;    // batch-norm statistics, which stay what they are
  int64_t parts = 1;               // of a share
  uint64_t seed = 1;
};

struct Measurement {
  std::vector<double> ready;  // when each layer's gradient is there, of the slowest worker
  ReduceTable sums;           // T(M), as rank 0 sees it
  // Of this rank's steps; in forward order.
  std::vector<LayerProfile> layers;
};

// Every rank computes some steps, all at the same time, whose gradients nobody gets; then there are
// sums of several sizes.  All ranks call it and get the same, but for the layers; nothing when a stop
// signal has come to one of them.
std::optional<Measurement> Measure(Transport& transport, const ExchangeSpec& spec,
                                   const MeasuredWorker& worker);

// T(M) alone, as rank 0 sees it, the same on all ranks: of the spec's collective or, where a compressor
// selects, of selections, with the time to select them.  Nothing when a stop signal has come.
std::optional<ReduceTable> MeasureAllReduceTimes(Transport& transport, const ExchangeSpec& spec);

// By layer's gradient, the latest of all ranks (ToBytes of each one's times).
std::vector<double> LastOf(const std::vector<std::string>& all);

}  // namespace dtrain
