// CollectiveCost: T(M) - how long the sum of a vector takes with a collective on a cluster.
//
// A vector goes through the collective's schedule as a whole (plan_cost.h), a short one through its
// small schedule.  A pipelined one (CollectiveRules::pipelined) goes through in K chunks:
//
//   T = T(chunk) + (K-1) max(busy(chunk), T(chunk) / lanes)
//
// for a chunk follows the one before as soon as the busiest NIC or rank has room for it, and a lane
// is free.
//
// The channel carries one vector at a time.  Where vectors overlap, one follows the other as chunks
// do: what of it is waiting for messages on their way is hidden behind the transfers of the one
// before, and nothing else is (Interval).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/sim/schedule_cost.h"

namespace dtrain {

class CollectiveCost {
 public:
  // `options`: chunk_bytes, and the nodes (where unknown: rank / network.per_node) that share NICs
  // and that the schedule goes by.  Throws ConfigError for a collective that has no schedule of ours.
  CollectiveCost(const std::string& name, int ranks, const NetworkModel& network,
                 double add_ns_per_byte, const CollectiveOptions& options = {});

  // For a vector of n floats that is alone on the network; as fast as ScheduleCost::Of.
  Nanos Of(int64_t n) const;

  // Where it overlaps with the one before: how long after that one's end it ends at least.  At most
  // Of(n).
  Nanos Interval(int64_t n) const;

  // What a rank moves for it, as if no chunk were empty.
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
