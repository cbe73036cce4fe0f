// RankParts: what one rank of a run is made of, put together for whoever hosts it - InlineExchange,
// ThreadedExchange, a simulated rank, a replayed one.
#pragma once

#include <memory>

#include "framework/comm/node_window.h"
#include "framework/exchange/driver.h"
#include "framework/exchange/model_at_boundary.h"
#include "framework/exchange/quiescence.h"

namespace dtrain {

// What differs from host to host.
struct RankSeams {
  const Clock* clock = nullptr;
  EventTimes* event_times = nullptr;  // DriverSeams
  // Outlives the rank, whose vectors are where it makes blobs; null in a ghost run.
  BlobPools* pools = nullptr;
  std::unique_ptr<NodeWindow> window = nullptr;        // of the channel; null where there is none
  std::unique_ptr<MessageChannel> channel;             // null with one rank
  std::unique_ptr<Collective> collective = nullptr;    // null with one worker or with servers
  std::unique_ptr<SparseCollective> sparse = nullptr;  // the same, where its sums are compressed
  std::unique_ptr<DeviceResidual> residual = nullptr;  // DriverSeams::worker_residual
  Piece weights = {};  // the model's, to begin with; no blob in a ghost run
  int threads = 1;     // of the team of the thread that drives
  int64_t timeline_events = Timeline::kEventsMax;
};

struct RankParts {
  // `spec` outlives it.
  RankParts(const ExchangeSpec& spec, Rank rank, RankSeams given);

  // Where the backward pass writes.
  Arena gradients();
  // At a boundary: what this rank keeps of its own, for checkpoints.
  StateRecord Save();

  RankSeams seams;
  EventLog log;
  std::unique_ptr<RankTimeline> timeline;  // null: not asked for
  SumTimes sum_times;                      // empty where nobody asked
  std::unique_ptr<VectorOps> ops;
  Driver driver;
  Quiescence quiescence;
  ModelAtBoundary model;
  // What its actors, and its worker alone, had counted when it was made: before a resume.
  const ProtocolReport protocol_before, worker_before;
};

// The channel and the collective that a spec's strategy needs over a real transport, with weights of
// the spec's start.  Clock, transport and pools outlive the rank.  Every rank calls it: where the
// spec wants a window between ranks of a node, they agree on it here.  `device`: where the net
// computes; the thread that calls is the one that drives.
RankSeams SeamsOver(Transport& transport, const ExchangeSpec& spec, const Clock& clock,
                    BlobPools& pools, const Device& device = {}, int threads = 1);

}  // namespace dtrain
