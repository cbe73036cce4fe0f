// Exchange: what the trainer sees of any protocol.  Its loop is
//
//   Turn turn = exchange.Begin(samples);        // blocks until the step may start, or a boundary
//   ... backward pass: exchange.Ready(range)    // in backward order, as gradients become final
//   StepOutcome outcome = exchange.End(report); // blocks until the step is over
//
// Between Begin and End the trainer owns gradients().  Dropping the weights before End lets the
// update happen in place.  Weights and gradients may lie in a device's memory (Blob::arena).  On a rank without a worker Begin waits for the next boundary.  One thread
// calls an Exchange.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/comm/transport.h"
#include "framework/core/layout.h"
#include "framework/core/state_record.h"
#include "framework/core/time.h"
#include "framework/device/blob.h"
#include "framework/exchange/event_log.h"
#include "framework/exchange/quiescence.h"
#include "framework/exchange/sum_times.h"
#include "framework/strategies/report.h"

namespace dtrain {

// Since the start or the resume.
struct ExchangeStats {
  Collective::Traffic traffic;
  Nanos exposed = 0;        // time that Begin and End waited, without boundaries
  ProtocolReport protocol;  // of all actors of this rank
  ProtocolReport worker;    // of its worker alone
  CompressionReport compression;
};

struct Turn {
  bool boundary = false;  // else: a step, with these weights
  Blob weights;
  BoundaryState state;  // of the boundary
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  // `samples`: of the mini-batch that the step would take.  After a boundary, Leave comes first.
  virtual Turn Begin(int64_t samples) = 0;
  virtual Arena gradients() = 0;  // in layout order
  virtual void Ready(Range range) = 0;
  // Between Begin and End of a synchronous strategy: values[i] becomes the sum of every worker's,
  // in rank order.  Blocks until all workers have called it, each with as many values.  For a few
  // thousand numbers (batch statistics), not for gradients.
  virtual void SumOverWorkers(std::span<double> values) = 0;
  virtual StepOutcome End(const StepReport& report) = 0;

  // --- at a boundary.  All ranks do the same, in the same order.
  // Runs `work` on the thread that owns the transport: evaluation, checkpoints and agreement
  // exchange their few bytes this way.
  virtual void AtBoundary(const std::function<void(Transport&)>& work) = 0;
  // Brings the model's weights to every rank and, when asked, the solver's vectors to rank 0.
  virtual void Collect(bool with_solver) = 0;
  // What Collect brought: valid until Leave.  Weights are where steps get them; HostWeights are in
  // the machine's memory, copied there by the first call where they are not.  So is the solver's
  // state, by Collect.
  virtual Blob weights() = 0;
  virtual const float* HostWeights() = 0;
  virtual std::span<float* const> solver_state() = 0;
  virtual int64_t updates() = 0;  // that the weights have had; with the solver, on rank 0
  virtual double spread() = 0;    // of replicas about their mean (ModelAtBoundary), on rank 0
  // What this rank keeps of its own (ExchangeSpec::Start::ranks), and what of it others of this run
  // are to get, in words (Actor::Holds).
  struct Own {
    StateRecord state;
    std::string holds;
  };
  virtual Own SaveOwn() = 0;
  // Of a synchronous strategy: its sums go in these buckets from now on.
  virtual void SetBuckets(const std::vector<Range>& buckets) = 0;
  // Of the steps since the start, or since it was cleared; where ExchangeSpec::watch_sums asks.
  virtual SumTimes& sum_times() = 0;
  virtual void Leave() = 0;

  virtual Quiescence::Told told() const = 0;  // asynchronous, rank 0: what all workers did of late
  virtual ExchangeStats stats() const = 0;
  virtual const EventLog& record() const = 0;
  virtual RankTimeline* timeline() = 0;  // null: not asked for
};

}  // namespace dtrain
