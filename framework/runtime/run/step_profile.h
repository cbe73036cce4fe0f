// What a schedule that goes by time is planned from, measured before the first step.
#pragma once

#include <span>

#include "framework/comm/transport.h"
#include "framework/data/batches.h"
#include "framework/exchange/exchange_spec.h"
#include "framework/nn/net.h"
#include "framework/runtime/run/pacing.h"

namespace dtrain {

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

// `pieces` with the times at which each is there, of the slowest worker, and T(M) of the collective
// of `spec` as rank 0 sees it.  Every rank computes some steps, all at the same time, whose
// gradients nobody gets; then there are sums of several sizes.  All ranks call it and get the same.
GradientPieces MeasurePieces(Transport& transport, const ExchangeSpec& spec,
                             const MeasuredWorker& worker);

}  // namespace dtrain
