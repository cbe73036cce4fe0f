// PlanPrice: how long a collective takes, by the rounds of its plan (comm/plan.h).
//
// A round takes as long as its slowest card and its slowest rank: latency, the bytes that share the
// busiest direction of a card at its rate, the additions.  All ranks begin a round together, and
// nothing else is on the network: for uniform links this is what sending message by message gives,
// and for the ring it is 2 (P-1) alpha + 2 (P-1)/P n beta + (P-1)/P n gamma (the usual cost table:
// Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
// IJHPCA 2005).  With several ranks a node a ring's rounds overlap, and this is an upper bound.  A
// token bucket is full at the beginning.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/plan.h"
#include "framework/core/time.h"
#include "framework/sim/network_model.h"

namespace dtrain {

class PlanPrice {
 public:
  // Looks at every rank's plan once: O(moves of all ranks), 0.2 s for 2048 ranks.
  // `add_ns_per_byte`: gamma, the time for one byte of one addition.
  // `node_of`: the node of each rank; empty: rank / network.per_node.
  PlanPrice(Planner planner, int ranks, const NetworkModel& network, double add_ns_per_byte,
            std::vector<int> node_of = {});

  // For a vector of n floats.  O(1) without a token bucket, else O(rounds).
  Nanos Of(int64_t n) const;

 private:
  // What the slowest do in a round, in pieces.
  struct Round {
    int64_t card = 0;       // through one direction of a card
    int64_t inside = 0;     // from one rank to another of its node
    int64_t messages = 0;   // sent and received by a rank
    int64_t additions = 0;  // by a rank
    friend bool operator==(const Round&, const Round&) = default;
  };
  struct Rounds {  // so many alike, one after the other
    int count;
    Round round;
  };
  class Survey;

  double RoundTime(const Round& round, double piece_bytes, TokenBucket& card) const;

  int ranks_;
  NetworkModel network_;
  double add_ns_per_byte_;
  std::vector<Rounds> rounds_;
};

}  // namespace dtrain
