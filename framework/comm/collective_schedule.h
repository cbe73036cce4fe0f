// CollectiveSchedule: a collective as data.  It is a list of moves for each rank.  One interpreter
// carries it out (schedule_run.h), one checker proves it (tests/comm/schedule_checker.h), and the
// simulator computes its cost (sim/schedule_cost.h).
//
// The vector is split into `blocks`, numbered from 0.  A rank works on its own copy, in place, and
// has scratch memory for the blocks that it fetches.  A move handles one block, or several
// neighbouring ones, which are sent as one message.  Moves run in rounds.  A round begins when
// everything awaited in the round before has arrived.  A move that writes a block waits until that
// block is sent.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/core/layout.h"

namespace dtrain {

enum class MoveKind {
  kFetch,    // receives `peer`'s copy into scratch; all fetches of a round are of the same blocks,
             // in rank order
  kSend,     // sends the own copy to `peer`
  kReceive,  // receives from `peer`, overwriting the own copy
  kSum,      // own copy = sum of it and of all copies fetched in this round, in rank order; waits
             // for everything awaited so far
};

struct Move {
  int round = 0;
  MoveKind kind = MoveKind::kSend;
  Rank peer = 0;  // the rank itself for kSum
  int block = 0;  // first block
  int count = 1;  // number of blocks

  bool writes() const { return kind == MoveKind::kReceive || kind == MoveKind::kSum; }
};

struct CollectiveSchedule {
  int blocks = 1;
  std::vector<Move> moves;  // in the order of rounds

  // Returns the largest number of blocks fetched in a round: the scratch memory that a rank needs.
  int fetches_max() const;
};

// The node of each rank, a number in [0, ranks); empty: each rank is a node of its own.
using NodeMap = std::span<const int>;

// Returns the moves of `rank` in a world of `world` ranks.  All ranks must use the same `node_of`.
using CollectiveScheduler = CollectiveSchedule (*)(int world, Rank rank, NodeMap node_of);

// Direct reduce-scatter, then all-gather: the owner of a block fetches every rank's copy, adds them
// in rank order and sends the sum to all.  Two rounds, the canonical sum, 2 (P-1)/P n bytes per
// rank.
CollectiveSchedule OrderedSchedule(int world, Rank rank, NodeMap node_of = {});

// Every rank sends its whole vector to every other rank, and adds in rank order.  One round, the
// canonical sum as well, (P-1) n bytes per rank.  It is meant for vectors so small that only the
// number of rounds matters.
CollectiveSchedule ExchangeSchedule(int world, Rank rank, NodeMap node_of = {});

// The classic ring: P-1 rounds of reduce-scatter, P-1 of all-gather, between neighbours only; 2
// (P-1)/P n bytes per rank.  Block p is summed from rank p+1 around to rank p.  (Patarasuk and
// Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009, section
// 4.)
CollectiveSchedule RingSchedule(int world, Rank rank, NodeMap node_of = {});

// Returns how many of the bytes that `rank` sends for a vector of n floats go to other ranks of its
// node.  `node_of`: the node of each rank.
int64_t BytesInside(const CollectiveSchedule& schedule, Rank rank, const std::vector<int>& node_of,
                    int64_t n);

// Returns the range of block `block` of `blocks`, or of `count` blocks from it on, in a vector of n
// floats.  Blocks begin at multiples of 16 floats (a cache line), so a short vector has empty
// blocks, which are not sent.
Range BlockOf(int64_t n, int blocks, int block, int count = 1);

}  // namespace dtrain
