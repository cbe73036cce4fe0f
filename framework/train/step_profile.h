// Measures, before the first step, the times from which a schedule is planned.
#pragma once

#include <optional>
#include <span>

#include "framework/cluster/pacing.h"
#include "framework/comm/reduce_time.h"
#include "framework/comm/transport.h"
#include "framework/core/model_profile.h"
#include "framework/data/batches.h"
#include "framework/exchange/exchange_spec.h"
#include "framework/nn/net.h"
#include "framework/setup/run_config.h"

namespace dtrain {

inline constexpr int kMeasuredSteps = 20;

// Refers to the worker with which the steps are measured.  Everything is borrowed.
struct MeasuredWorker {
  Net& net;
  Pacer& pacer;
  const Batch& batch;              // a batch of the usual size
  std::span<const float> weights;  // weights of the model
  std::span<const float> state;    // batch-norm statistics; they are not changed
  int64_t parts = 1;               // micro-batches of a worker's share
  uint64_t seed = 1;
};

struct Measurement {
  std::vector<double> ready;  // ready time of each layer's gradient at the slowest worker, seconds
  ReduceTable sums;           // T(M), as rank 0 measured it
  // Holds the times of this rank's layers, in forward order.
  std::vector<LayerProfile> layers;
};

// Collective.  All ranks compute kMeasuredSteps steps at the same time, whose gradients are discarded, then all-reduce
// vectors of several sizes.  All get the same result, except for the layers, which are each rank's own.  Returns
// nothing if a stop signal has reached any rank.
std::optional<Measurement> Measure(Transport& transport, const ExchangeSpec& spec,
                                   const MeasuredWorker& worker);

// Measures T(M) alone; all ranks get rank 0's.  It is the time of the spec's collective or, if a compressor selects
// entries, that of the sparse all-reduce including the selection.  Returns nothing after a stop signal.
// `device`: that of the net, where the spec's vectors may be.
std::optional<ReduceTable> MeasureAllReduceTimes(Transport& transport, const ExchangeSpec& spec,
                                                 const Device& device = {});

}  // namespace dtrain
