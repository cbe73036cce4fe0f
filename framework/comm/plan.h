// Plan: a collective as data.  A list of moves for each rank, which one interpreter carries out
// (plan_run.h), one checker proves (tests/comm/plan_checker.h) and the simulator prices
// (sim/plan_price.h).
//
// The vector is cut into `pieces`, numbered from 0; a rank works on its own copy, in place, and has
// scratch memory for what it fetches.  A move is about one piece, or about several side by side,
// which travel as one message.  Moves run in rounds: a round begins when everything awaited in the
// round before has arrived.  A move that writes a piece waits until that piece is sent.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/core/layout.h"

namespace dtrain {

enum class MoveKind {
  kFetch,  // receives `peer`'s copy into scratch; in a round all of the same pieces, in rank order
  kSend,   // sends the own copy to `peer`
  kReceive,  // receives from `peer` in place of the own copy
  kSum,      // own copy = the sum of it and of all fetched in this round, in rank order; waits for
             // everything awaited so far
};

struct Move {
  int round = 0;
  MoveKind kind = MoveKind::kSend;
  Rank peer = 0;  // the rank itself for kSum
  int piece = 0;  // the first
  int count = 1;  // so many pieces

  bool writes() const { return kind == MoveKind::kReceive || kind == MoveKind::kSum; }
};

struct Plan {
  int pieces = 1;
  std::vector<Move> moves;  // by round

  int fetches_max() const;  // in one round: how many pieces of scratch memory a rank needs
};

// The node of each rank, a number in [0, ranks); empty: each rank is a node of its own.
using NodeMap = std::span<const int>;

// The moves of `rank` among `world` ranks.  The plans of all ranks are made for the same nodes.
using Planner = Plan (*)(int world, Rank rank, NodeMap node_of);

// Direct reduce-scatter, then all-gather: the owner of a piece fetches everyone's copy, adds in
// rank order and sends the sum to all.  Two rounds, the canonical sum, 2 (P-1)/P n bytes a rank.
Plan OrderedPlan(int world, Rank rank, NodeMap node_of = {});

// Everyone sends everything to everyone and adds in rank order: one round, the canonical sum as
// well, (P-1) n bytes a rank.  For vectors so small that only the number of rounds counts.
Plan ExchangePlan(int world, Rank rank, NodeMap node_of = {});

// The classic ring: P-1 rounds of reduce-scatter, P-1 of all-gather, neighbours only; 2 (P-1)/P n
// bytes a rank.  Piece p is summed from rank p+1 around to rank p.  (Patarasuk and Yuan, "Bandwidth
// optimal all-reduce algorithms for clusters of workstations", JPDC 2009, section 4.)
Plan RingPlan(int world, Rank rank, NodeMap node_of = {});

// Of what `rank` sends by its plan, how many bytes of an n-float vector go to other ranks of its node.
// `node_of`: of each rank.
int64_t BytesInside(const Plan& plan, Rank rank, const std::vector<int>& node_of, int64_t n);

// Where piece `piece` of `pieces`, or `count` from it on, lie in a vector of n floats.  The cuts are multiples of 16
// floats (a cache line) from its start, so a short vector has empty pieces, which nobody sends.
Range PieceOf(int64_t n, int pieces, int piece, int count = 1);

}  // namespace dtrain
