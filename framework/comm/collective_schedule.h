// CollectiveSchedule: a collective as data.  A list of moves for each rank, which one interpreter carries out
// (plan_run.h), one checker proves (tests/comm/schedule_checker.h) and the simulator costs
// (sim/schedule_cost.h).
//
// The vector is cut into `blocks`, numbered from 0; a rank works on its own copy, in place, and has
// scratch memory for what it fetches.  A move is about one block, or about several side by side,
// which travel as one message.  Moves run in rounds: a round begins when everything awaited in the
// round before has arrived.  A move that writes a block waits until that block is sent.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/core/layout.h"

namespace dtrain {

enum class MoveKind {
  kFetch,  // receives `peer`'s copy into scratch; in a round all of the same blocks, in rank order
  kSend,   // sends the own copy to `peer`
  kReceive,  // receives from `peer` in place of the own copy
  kSum,      // own copy = the sum of it and of all fetched in this round, in rank order; waits for
             // everything awaited so far
};

struct Move {
  int round = 0;
  MoveKind kind = MoveKind::kSend;
  Rank peer = 0;  // the rank itself for kSum
  int block = 0;  // the first
  int count = 1;  // so many blocks

  bool writes() const { return kind == MoveKind::kReceive || kind == MoveKind::kSum; }
};

struct CollectiveSchedule {
  int blocks = 1;
  std::vector<Move> moves;  // by round

  int fetches_max() const;  // in one round: how many blocks of scratch memory a rank needs
};

// The node of each rank, a number in [0, ranks); empty: each rank is a node of its own.
using NodeMap = std::span<const int>;

// The moves of `rank` among `world` ranks.  The schedules of all ranks are made for the same nodes.
using CollectiveScheduler = CollectiveSchedule (*)(int world, Rank rank, NodeMap node_of);

// Direct reduce-scatter, then all-gather: the owner of a block fetches everyone's copy, adds in
// rank order and sends the sum to all.  Two rounds, the canonical sum, 2 (P-1)/P n bytes a rank.
CollectiveSchedule OrderedSchedule(int world, Rank rank, NodeMap node_of = {});

// Everyone sends everything to everyone and adds in rank order: one round, the canonical sum as
// well, (P-1) n bytes a rank.  For vectors so small that only the number of rounds counts.
CollectiveSchedule ExchangeSchedule(int world, Rank rank, NodeMap node_of = {});

// The classic ring: P-1 rounds of reduce-scatter, P-1 of all-gather, neighbours only; 2 (P-1)/P n
// bytes a rank.  Block p is summed from rank p+1 around to rank p.  (Patarasuk and Yuan, "Bandwidth
// optimal all-reduce algorithms for clusters of workstations", JPDC 2009, section 4.)
CollectiveSchedule RingSchedule(int world, Rank rank, NodeMap node_of = {});

// Of what `rank` sends by its schedule, how many bytes of an n-float vector go to other ranks of its node.
// `node_of`: of each rank.
int64_t BytesInside(const CollectiveSchedule& schedule, Rank rank, const std::vector<int>& node_of,
                    int64_t n);

// Where block `block` of `blocks`, or `count` from it on, lie in a vector of n floats.  The cuts are multiples of 16
// floats (a cache line) from its start, so a short vector has empty blocks, which nobody sends.
Range BlockOf(int64_t n, int blocks, int block, int count = 1);

}  // namespace dtrain
