// SparseCost: how long a sparse collective takes, and what it moves, by its rounds as they are sent
// (comm/sparse_*.h).
//
// As in plan_cost.h all ranks begin a round together and nothing else is on the network; a round costs
// what its busiest NIC and rank do.  For links that are all alike, with a, b and g for latency, time a
// byte and time a byte added, in words of 4 bytes, without the words that counts take:
//
//   gather   a log P + 2 (P-1) k b
//   gtopk    2 a log P + 4 k log P b + 2 k log P g
//   oktopk   a ((P-1)/4 + 2 log P) + 4 k (P-1)/P b + 2 k (P-1)/P g
//
// log P is rounded up; gtopk's and the periodic sums' tree has one level more where P is no power of two.
// (Table of costs: Li and Hoefler, PPoPP 2022, section 3.)  What gather's caller adds is the
// caller's.  oktopk: regions are taken to hold alike numbers of entries, so nothing is moved to balance
// them; on top of the above, every 64th call cuts them (sums of P numbers of 8 bytes), every 32nd finds
// the exact threshold (4 sums of 256).  These sums take a little longer where P is no power of two:
// what quick ranks send next shares NICs with them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/core/time.h"
#include "framework/sim/network_model.h"
#include "framework/sim/round_cost.h"

namespace dtrain {

struct SparseLoad {
  double entries = 0;  // that each rank has selected, in the mean
  double k = 0;        // asked for: so many are in gtopk's and oktopk's sum
  int64_t call = -1;   // of its unit, from 0; below: the mean over all calls
};

class SparseCost {
 public:
  // `collective`: "gather", "gtopk", "oktopk" (UsageError for others).  `add_ns_per_byte`: of dense
  // additions; a sparse entry counts as 8 bytes.  `node_of`: the node of each rank; empty: rank /
  // network.per_node.  O(ranks log ranks); the functions below O(log ranks), oktopk's O(ranks).
  SparseCost(const std::string& collective, int ranks, const NetworkModel& network,
             double add_ns_per_byte, std::vector<int> node_of = {});

  const std::string& collective() const { return collective_; }
  int ranks() const { return ranks_; }

  Nanos Of(const SparseLoad& load) const;

  // What a rank moves, in the mean over ranks; in bytes and messages.
  struct Moved {
    double bytes_sent = 0;  // and received: all ranks' together are as many
    double bytes_inside = 0;
    double messages = 0;
    double periodic_bytes = 0;  // of bytes_sent, for exact thresholds
  };
  Moved MovedBy(const SparseLoad& load) const;

 private:
  // In blocks, of which each message has some.
  struct Round {
    double nic = 0;         // through the busiest direction of a NIC
    double inside = 0;      // the largest from one rank to another of its node
    double all = 0;         // sent by all ranks
    double all_inside = 0;  // of these, inside nodes
    double sends = 0;       // messages of all ranks
    double posts = 0;       // messages that one rank sends and receives
    bool between = false;   // anything passes a NIC
    double added = 0;       // by a rank
  };
  using Rounds = std::vector<Round>;
  class Survey;
  // Rounds, with the size of a block, and how often: 1/64 is every 64th call.
  struct Phase {
    const Rounds* rounds = nullptr;
    double block_bytes = 0;
    int messages = 1;  // that a round's message is sent as
    double times = 1;
    bool periodic = false;  // for exact thresholds
  };

  std::vector<Phase> PhasesOf(const SparseLoad& load) const;
  double TimesIn(const SparseLoad& load, int64_t period) const;
  double PhaseNs(const Phase& phase, TokenBucket& nic) const;

  std::string collective_;
  int ranks_;
  NetworkModel network_;
  double add_ns_per_byte_;
  Rounds shifts_;  // all-gathers
  Rounds up_, down_;
  Rounds sums_;   // of counts
  Rounds split_;  // by owners
};

}  // namespace dtrain
