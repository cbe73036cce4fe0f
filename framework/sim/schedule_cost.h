// ScheduleCost: the time of a schedule (comm/collective_schedule.h), computed round by round.
//
// A round takes as long as its busiest NIC and its busiest rank: latency, the bytes in the busiest
// direction of a NIC divided by its rate, and the additions.  It is assumed that all ranks begin a
// round together, and that there is no other traffic.  For uniform links the result equals that of
// a simulation message by message, and for the ring it is 2 (P-1) alpha + 2 (P-1)/P n beta +
// (P-1)/P n gamma (the usual cost table: Thakur, Rabenseifner and Gropp, "Optimization of
// collective communication operations in MPICH", IJHPCA 2005).  With several ranks per node the
// rounds of a ring overlap, and this is an upper bound.  If ranks have different work (a fold,
// nodes of different size), a message is assumed to be sent when its receiver has reached the
// round, as long messages of MPI are.  If they were sent earlier they would delay others, so this
// is a lower bound.  Token buckets are full at the beginning.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/cluster/network_model.h"
#include "framework/comm/collective_schedule.h"
#include "framework/core/time.h"

namespace dtrain {

// Blocks and messages that a rank moves for one vector.
struct BlocksMoved {
  int64_t sent = 0;
  int64_t received = 0;
  int64_t inside = 0;  // blocks sent to other ranks of its node, included in `sent`
  int64_t messages = 0;
};

class ScheduleCost {
 public:
  // Takes O(moves of all ranks): 0.2 s for the 17 million moves of `ordered` on 2048 ranks.
  // `add_ns_per_byte`: gamma, the time for one byte of one addition.
  // `node_of`: the node of each rank; empty: rank / network.per_node.
  // `plan_nodes`: the nodes that the schedule is made for; empty: node_of.
  ScheduleCost(CollectiveScheduler scheduler, int ranks, const NetworkModel& network,
               double add_ns_per_byte, std::vector<int> node_of = {}, NodeMap plan_nodes = {});

  // Returns the time for a vector of n floats.  Takes O(1) without a token bucket, else O(rounds).
  Nanos Of(int64_t n) const;

  // Returns the part of that time in which the busiest NIC or rank is occupied, so that another
  // chunk cannot use it.  It is computed with the long-run rate of a token bucket.
  Nanos BusyFor(int64_t n) const;

  int blocks() const { return blocks_; }
  const BlocksMoved& MovedBy(Rank rank) const { return moved_[rank]; }

 private:
  // Holds maxima over the NICs and ranks in a round, in blocks.
  struct Round {
    int64_t nic = 0;        // through one direction of a NIC
    int64_t inside = 0;     // from one rank to another of its node
    int64_t messages = 0;   // sent and received by a rank
    int64_t additions = 0;  // by a rank
    int run = 1;            // neighbouring blocks in one message
    friend bool operator==(const Round&, const Round&) = default;
  };
  struct Rounds {  // `count` equal rounds, one after the other
    int count;
    Round round;
  };
  class Survey;

  double RoundTime(const Round& round, int64_t n, TokenBucket& nic) const;

  NetworkModel network_;
  double add_ns_per_byte_;
  int blocks_ = 1;
  std::vector<Rounds> rounds_;
  Round whole_;  // maxima over the NICs and ranks, of all rounds together
  std::vector<BlocksMoved> moved_;
};

}  // namespace dtrain
