// CollectivePrice: T(M) - how long the sum of a vector takes with a collective on a cluster.
//
// A vector goes through the collective's plan as a whole (plan_price.h), a short one through its
// small plan.  A pipelined one (PlanRules::pipelined) goes through in K chunks:
//
//   T = T(chunk) + (K-1) max(busy(chunk), T(chunk) / lanes)
//
// for a chunk follows the one before as soon as the busiest card or rank has room for it, and a lane
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
#include "framework/sim/plan_price.h"

namespace dtrain {

class CollectivePrice {
 public:
  // `options`: chunk_bytes, and the nodes (where unknown: rank / network.per_node) that share cards
  // and that the plan goes by.  Throws ConfigError for a collective that has no plan of ours.
  CollectivePrice(const std::string& name, int ranks, const NetworkModel& network,
                  double add_ns_per_byte, const CollectiveOptions& options = {});

  // For a vector of n floats that is alone on the network; as fast as PlanPrice::Of.
  Nanos Of(int64_t n) const;

  // Where it overlaps with the one before: how long after that one's end it ends at least.  At most
  // Of(n).
  Nanos Interval(int64_t n) const;

  // What a rank moves for it, as if no piece were empty.
  Collective::Traffic TrafficOf(Rank rank, int64_t n) const;

 private:
  bool IsSmall(int64_t n) const;
  const PlanPrice& PlanFor(int64_t n) const { return IsSmall(n) ? *small_ : large_; }
  int64_t ChunksOf(int64_t n) const;
  Nanos IntervalOfChunk(const PlanPrice& plan, int64_t chunk) const;

  PlanRules rules_;
  PlanPrice large_;
  std::optional<PlanPrice> small_;
};

}  // namespace dtrain
