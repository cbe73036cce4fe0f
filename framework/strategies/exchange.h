// Exchange: what the trainer sees of any protocol.  Its loop is
//
//   Blob weights = exchange.Begin();            // blocks until the step may start
//   ... backward pass: exchange.Ready(range)    // in backward order, as gradients become final
//   StepOutcome outcome = exchange.End(report); // blocks until the step is over
//
// Between Begin and End the trainer owns gradients().  Dropping `weights` before End lets the update
// happen in place.  One thread calls an Exchange.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "framework/comm/collective.h"
#include "framework/comm/transport.h"
#include "framework/core/range.h"
#include "framework/core/time.h"
#include "framework/device/blob.h"

namespace dtrain {

// What a worker says of its step.  It rides, uncompressed, behind the last bucket.
struct StepReport {
  int64_t samples = 0;
  double loss_sum = 0;
  bool stop = false;      // this rank was asked to stop
};

// The same for all workers together: equal on every rank.
struct StepOutcome {
  int64_t samples = 0;
  double loss_sum = 0;
  bool stop = false;      // some rank was asked to stop
  bool finite = true;     // no NaN or infinity in the loss or in an updated weight
};

struct ExchangeStats {
  Collective::Traffic traffic;
  Nanos exposed = 0;      // time End waited
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual Blob Begin() = 0;
  virtual float* gradients() = 0;          // one arena, in layout order
  virtual void Ready(Range range) = 0;
  virtual StepOutcome End(const StepReport& report) = 0;

  // Runs `work` on the thread that owns the transport while nothing is in flight: evaluation,
  // checkpoints and agreement exchange their few bytes this way.  All ranks do the same work.
  virtual void AtRest(const std::function<void(Transport&)>& work) = 0;

  // At rest: the newest weights, and the solver's vectors to save or restore.
  virtual Blob weights() = 0;
  virtual std::span<float* const> solver_state() = 0;

  virtual double learning_rate() const = 0;   // of the last step
  virtual ExchangeStats stats() const = 0;
};

}  // namespace dtrain
