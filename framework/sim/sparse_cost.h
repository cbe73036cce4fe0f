// SparseCost: the time of a sparse collective, and the bytes that it moves, computed from the phases
// that its registry entry has (comm/sparse_schedule.h).
//
// As in schedule_cost.h, all ranks begin a round together, there is no other traffic, and a round
// takes as long as its busiest NIC and rank.  With uniform links the costs are the following, where
// a is the latency, b the time to send a word of 4 bytes and g the time to add one; the words of
// counts are left out:
//
//   gather   a log P + 2 (P-1) k b
//   gtopk    2 a log P + 4 k log P b + 2 k log P g
//   oktopk   a ((P-1)/4 + 2 log P) + 4 k (P-1)/P b + 2 k (P-1)/P g
//
// log P is rounded up.  The tree of gtopk, and that of oktopk's periodic sums, has one level more
// if P is not a power of two.  (Table of costs: Li and Hoefler, PPoPP 2022, section 3.)  The
// additions of gather, which its caller makes, are not included.  For oktopk it is assumed that all
// regions have equal numbers of entries, so nothing is moved to balance them.  Besides the above,
// every 64th call computes new regions (sums of P numbers of 8 bytes), and every 32nd the exact
// threshold (4 sums of 256 numbers).  These sums really take a little longer if P is not a power of
// two, since fast ranks already send their next messages over the same NICs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/cluster/network_model.h"
#include "framework/comm/sparse_schedule.h"
#include "framework/core/time.h"
#include "framework/sim/round_cost.h"

namespace dtrain {

struct SparseLoad {
  double entries = 0;  // entries that a rank has selected, mean over the ranks
  double k = 0;        // entries asked for, which is the size of gtopk's and oktopk's sum
  int64_t call = -1;   // number of the unit's call, from 0; -1: the mean over all calls
};

class SparseCost {
 public:
  // Throws UsageError for a collective that is not registered.  `add_ns_per_byte`: time of dense
  // additions; a sparse entry counts as 8 bytes.  `node_of`: the node of each rank; empty: rank /
  // network.per_node.  Takes O(ranks log ranks); the functions below take O(log ranks), for oktopk
  // O(ranks).
  SparseCost(const std::string& collective, int ranks, const NetworkModel& network,
             double add_ns_per_byte, std::vector<int> node_of = {});

  const std::string& collective() const { return collective_; }
  int ranks() const { return ranks_; }

  Nanos Of(const SparseLoad& load) const;

  // Bytes and messages that a rank moves, mean over the ranks.
  struct Moved {
    double bytes_sent = 0;  // the mean of bytes received is the same
    double bytes_inside = 0;
    double messages = 0;
    double periodic_bytes = 0;  // part of bytes_sent for exact thresholds
  };
  Moved MovedBy(const SparseLoad& load) const;

 private:
  // A round.  Amounts are in blocks; each message has one or more blocks.
  struct Round {
    double nic = 0;         // through the busiest direction of a NIC
    double inside = 0;      // the largest amount from one rank to another of its node
    double all = 0;         // sent by all ranks
    double all_inside = 0;  // part of `all` inside nodes
    double sends = 0;       // messages of all ranks
    double posts = 0;       // largest number of messages that a rank sends and receives
    bool between = false;   // some message passes a NIC
    double added = 0;       // arithmetic of a rank
  };
  class Survey;
  struct Phase {
    SparsePhase sizes;  // without its moves
    std::vector<Round> rounds;
  };

  static double BlockBytes(const SparsePhase& phase, const SparseLoad& load);
  static double TimesIn(const SparsePhase& phase, const SparseLoad& load);
  double PhaseNs(const Phase& phase, const SparseLoad& load, TokenBucket& nic) const;

  std::string collective_;
  int ranks_;
  NetworkModel network_;
  double add_ns_per_byte_;
  std::vector<Phase> phases_;
};

}  // namespace dtrain
