// ScheduleCost: how long a schedule (comm/collective_schedule.h) takes, by its rounds.
//
// A round takes as long as its slowest NIC and its slowest rank: latency, the bytes that share the
// busiest direction of a NIC at its rate, the additions.  All ranks begin a round together, and
// nothing else is on the network: for uniform links this is what sending message by message gives,
// and for the ring it is 2 (P-1) alpha + 2 (P-1)/P n beta + (P-1)/P n gamma (the usual cost table:
// Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
// IJHPCA 2005).  With several ranks a node a ring's rounds overlap, and this is an upper bound.
// Where ranks have not the same to do (a fold, nodes of different size) a message is thought to leave
// when its receiver has come to the round, as long ones of MPI do; were they sent early they would be
// in the way of others, and this is a lower bound.  A token bucket is full at the beginning.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/collective_schedule.h"
#include "framework/core/time.h"
#include "framework/sim/network_model.h"

namespace dtrain {

// What a rank moves for one vector, in blocks of it.
struct BlocksMoved {
  int64_t sent = 0;
  int64_t received = 0;
  int64_t inside = 0;  // of those sent, to others of its node
  int64_t messages = 0;
};

class ScheduleCost {
 public:
  // Looks at every rank's schedule once: O(moves of all ranks), 0.2 s for the 17 million of `ordered` on
  // 2048 ranks.
  // `add_ns_per_byte`: gamma, the time for one byte of one addition.
  // `node_of`: the node of each rank; empty: rank / network.per_node.
  // `plan_nodes`: those that the schedule goes by; empty: node_of.
  ScheduleCost(CollectiveScheduler scheduler, int ranks, const NetworkModel& network,
               double add_ns_per_byte, std::vector<int> node_of = {}, NodeMap plan_nodes = {});

  // For a vector of n floats.  O(1) without a token bucket, else O(rounds).
  Nanos Of(int64_t n) const;

  // Of that time, what the busiest NIC or rank has its hands full: without it, nothing else can get
  // on.  At the long-run rate of a token bucket.
  Nanos BusyFor(int64_t n) const;

  int blocks() const { return blocks_; }
  const BlocksMoved& MovedBy(Rank rank) const { return moved_[rank]; }

 private:
  // What the slowest do in a round, in blocks.
  struct Round {
    int64_t nic = 0;        // through one direction of a NIC
    int64_t inside = 0;     // from one rank to another of its node
    int64_t messages = 0;   // sent and received by a rank
    int64_t additions = 0;  // by a rank
    int run = 1;            // that travel side by side
    friend bool operator==(const Round&, const Round&) = default;
  };
  struct Rounds {  // so many alike, one after the other
    int count;
    Round round;
  };
  class Survey;

  double RoundTime(const Round& round, int64_t n, TokenBucket& nic) const;

  NetworkModel network_;
  double add_ns_per_byte_;
  int blocks_ = 1;
  std::vector<Rounds> rounds_;
  Round whole_;  // what the busiest do in all rounds together
  std::vector<BlocksMoved> moved_;
};

}  // namespace dtrain
