// RankParts: the objects of one rank of a run: driver, channel, collective, quiescence and the
// model at a boundary.  Its hosts are InlineExchange, ThreadedExchange, simulated ranks and
// replayed ranks.
#pragma once

#include <memory>
#include <string>

#include "framework/comm/node_window.h"
#include "framework/exchange/driver.h"
#include "framework/exchange/model_at_boundary.h"
#include "framework/exchange/quiescence.h"

namespace dtrain {

// Holds the dependencies of a rank that differ between hosts.
struct RankDependencies {
  const Clock* clock = nullptr;
  EventTimes* event_times = nullptr;  // DriverDependencies
  // Supplies memory for the rank's vectors.  Outlives the rank; null in a ghost run.
  BlobPools* pools = nullptr;
  std::unique_ptr<NodeWindow> window = nullptr;        // used by the channel; may be null
  std::unique_ptr<MessageChannel> channel;             // null with one rank
  std::unique_ptr<Collective> collective = nullptr;    // null with one worker or with servers
  std::unique_ptr<SparseCollective> sparse = nullptr;  // for compressed gradients; else null
  std::unique_ptr<Collective> reports = nullptr;       // DriverDependencies::reports
  std::unique_ptr<DeviceResidual> residual = nullptr;  // DriverDependencies::worker_residual
  VectorSlice weights = {};    // the model's initial weights; no blob in a ghost run
  int threads = 1;             // threads that a solver update may use
  StepGraph* steps = nullptr;  // gets the updates of vectors in a device's memory; else null
  int64_t timeline_events = Timeline::kEventsMax;
};

struct RankParts {
  // `spec` outlives it.
  RankParts(const ExchangeSpec& spec, Rank rank, RankDependencies given);

  // Returns the memory that the backward pass writes the gradient into.
  Arena gradients();
  // Returns the state that only this rank has, for checkpoints.  Call it at a boundary.
  StateRecord Save();

  RankDependencies dependencies;
  EventLog log;
  std::unique_ptr<RankTimeline> timeline;  // null if not requested
  AllReduceTimes all_reduce_times;         // used only with a timeline
  std::unique_ptr<VectorOps> ops;
  Driver driver;
  Quiescence quiescence;
  ModelAtBoundary model;
  // Counts of all actors, and of the worker alone, at construction: those from before a resume.
  const ProtocolReport protocol_before, worker_before;
};

// Returns true if a run of several ranks keeps weights, gradients and the solver's vectors in the memory of `device`: all
// ranks update the same weights by whole gradients, which a device's collective adds.  All ranks call it, and get the same
// answer.  `why_not` (may be null) gets the reason of a device that cannot do it; it is empty where the run's config is
// the reason.  Throws ConfigError if only devices have the run's collective.
bool StaysOnDevice(const ExchangeSpec& spec, const Device& device, Transport& transport,
                   std::string* why_not = nullptr);

// Makes the channel and the collective that a spec's strategy needs over a real transport, with the
// weights of the spec's start.  Clock, transport and pools outlive the rank.  It is a collective
// call: if the spec wants shared-memory windows between the ranks of a node, the ranks agree on
// them here.  `device`: the device that the net computes on.  The caller's thread must be the one
// that runs the driver.
RankDependencies DependenciesOver(Transport& transport, const ExchangeSpec& spec,
                                  const Clock& clock, BlobPools& pools, const Device& device = {},
                                  int threads = 1);

}  // namespace dtrain
