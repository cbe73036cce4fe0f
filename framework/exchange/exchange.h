// Exchange: the interface between the trainer and any protocol.  The trainer's loop is
//
//   Turn turn = exchange.Begin(samples);        // blocks until the step may start, or a boundary
//   ... backward pass: exchange.Ready(range)    // in backward order, as gradients become final
//   StepOutcome outcome = exchange.End(report); // blocks until the step is over
//
// Between Begin and End the trainer owns gradients().  If it drops the weights before End, the
// update happens in place.  Weights and gradients may be in a device's memory (Blob::arena).  On a
// rank without a worker, Begin waits for the next boundary.  All calls come from one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/comm/transport.h"
#include "framework/core/layout.h"
#include "framework/core/state_record.h"
#include "framework/core/time.h"
#include "framework/device/blob.h"
#include "framework/device/step_graph.h"
#include "framework/exchange/event_log.h"
#include "framework/exchange/quiescence.h"
#include "framework/strategies/report.h"

namespace dtrain {

// Counts since the start of the run, or since it was resumed.
struct ExchangeStats {
  Collective::Traffic traffic;
  Nanos exposed = 0;        // time that Begin and End waited, boundaries excluded
  ProtocolReport protocol;  // of all actors of this rank
  ProtocolReport worker;    // of its worker alone
  CompressionReport compression;
};

struct Turn {
  bool boundary = false;  // true: the run is at a boundary; false: compute a step
  Blob weights;           // weights to compute the step with
  BoundaryState state;    // state of the run at the boundary
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  // Begins a step with a mini-batch of `samples`.  At a boundary, call Leave before the next Begin.
  virtual Turn Begin(int64_t samples) = 0;
  virtual Arena gradients() = 0;  // in layout order
  // Once `written` is done, the range of the gradient is final.
  virtual void Ready(Range range, const ReadyEvent& written = {}) = 0;
  // Sets values[i] to the sum over all workers, added in rank order.  Call it between Begin and End
  // of a synchronous strategy.  It blocks until all workers have called it, each with the same
  // number of values.  It is meant for a few thousand numbers (batch statistics), not for
  // gradients.
  virtual void SumOverWorkers(std::span<double> values) = 0;
  virtual StepOutcome End(const StepReport& report) = 0;
  // Returns the steps to which the trainer may add its net's work, so that forward pass, backward pass
  // and update are one (Net::Submit); null with several ranks, or where gradients
  // leave the device.  With StepReport::lags, End then does not wait for the device, but at a boundary, on a stop and when many steps are under way.
  virtual StepGraph* steps() { return nullptr; }
  // Returns the loss scale of the next step of a run with `precision: fp16`.  Valid at a boundary.
  virtual LossScale loss_scale() const { return {}; }
  // Returns the results of the steps that the last End has waited for, in order; empty if it did not
  // wait.
  virtual std::span<const StepResults> results() const { return {}; }

  // --- at a boundary.  All ranks make the same calls in the same order.
  // Runs `work` on the thread that owns the transport.  Evaluation, checkpoints and agreement
  // between ranks send their few bytes this way.
  virtual void AtBoundary(const std::function<void(Transport&)>& work) = 0;
  // Brings the model's weights to every rank and, if `with_solver`, the solver's vectors to rank 0.
  virtual void Collect(bool with_solver) = 0;
  // These return the results of Collect, valid until Leave.  weights() are in the memory that steps
  // use, which may be a device's.  HostWeights() are in host memory; the first call copies them
  // there if necessary.  solver_state() is always in host memory.
  virtual Blob weights() = 0;
  virtual const float* HostWeights() = 0;
  virtual std::span<float* const> solver_state() = 0;
  // Returns the number of solver steps that the weights have had.  Valid on rank 0 after Collect
  // with the solver.
  virtual int64_t updates() = 0;
  // Returns the spread of the replicas about their mean (ModelAtBoundary::spread), on rank 0.
  virtual std::optional<double> spread() = 0;
  // Holds the state that only this rank has (ExchangeSpec::Start::ranks).  `holds` describes the
  // part of it that is meant for other actors of this run (Actor::Holds).
  struct Own {
    StateRecord state;
    std::string holds;
  };
  virtual Own SaveOwn() = 0;
  virtual void Leave() = 0;
  // Gives up sums that other ranks may never join, since this rank ends with an error.  Work on a device would else wait
  // for them.  No other call may follow.
  virtual void Abandon() {}

  // Returns the progress of all workers.  Valid on rank 0 of an asynchronous run.
  virtual Quiescence::Progress progress() const = 0;
  virtual ExchangeStats stats() const = 0;
  virtual const EventLog& record() const = 0;
  virtual RankTimeline* timeline() = 0;  // null unless ExchangeSpec::timeline is set
};

}  // namespace dtrain
