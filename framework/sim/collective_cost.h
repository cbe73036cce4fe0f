// CollectiveCost: T(M), the time of an all-reduce of a vector with a collective on a cluster.
//
// A vector runs through the collective's schedule as a whole (schedule_cost.h), a short one through
// its small schedule.  With a pipelined collective (CollectiveRules::pipelined) it runs through in
// K chunks:
//
//   T = T(chunk) + (K-1) max(busy(chunk), T(chunk) / lanes)
//
// since a chunk follows the one before as soon as the busiest NIC or rank has capacity for it, and
// a lane is free.
//
// The network carries one vector at a time.  If vectors overlap, they follow one another as chunks
// do: only the time in which a vector waits for messages in flight is hidden by the transfers of
// the one before (Interval).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/sim/schedule_cost.h"

namespace dtrain {

class CollectiveCost {
 public:
  // Uses these of the `options`: chunk_bytes, node_of (the nodes that share NICs; if empty, rank /
  // network.per_node) and plan_nodes (the nodes that the schedule depends on).  Throws ConfigError
  // for a collective that has no schedule (`mpi`).
  CollectiveCost(const std::string& name, int ranks, const NetworkModel& network,
                 double add_ns_per_byte, const CollectiveOptions& options = {});

  // Returns the time of a vector of n floats that is alone on the network.  It is as cheap to
  // compute as ScheduleCost::Of.
  Nanos Of(int64_t n) const;

  // Returns the least time between the end of the vector before and the end of this one, if they
  // overlap.  At most Of(n).
  Nanos Interval(int64_t n) const;

  // Returns the bytes and messages that a rank moves for the vector, as if no chunk were empty.
  Collective::Traffic TrafficOf(Rank rank, int64_t n) const;

 private:
  bool IsSmall(int64_t n) const;
  const ScheduleCost& ScheduleFor(int64_t n) const { return IsSmall(n) ? *small_ : large_; }
  int64_t ChunksOf(int64_t n) const;
  Nanos IntervalOfChunk(const ScheduleCost& schedule, int64_t chunk) const;

  CollectiveRules rules_;
  ScheduleCost large_;
  std::optional<ScheduleCost> small_;
};

}  // namespace dtrain
