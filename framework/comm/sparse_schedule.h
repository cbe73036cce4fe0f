// SparseSchedule: the rounds of messages that a part of a sparse collective makes, on all ranks.
// SparsePhase: a part of a collective with the sizes of its messages.
//
// A part runs its own turns of the schedule, and the simulator computes the time and the bytes of a
// collective from its phases (sim/sparse_cost.h).
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/transport.h"

namespace dtrain {

// One message.  Its size is a number of blocks; SparsePhase has the size of a block.
struct SparseMove {
  Rank from = 0;
  Rank to = 0;
  int blocks = 1;
};

// The moves of each round.  In a round a rank sends at most once, and receives at most once.
using SparseSchedule = std::vector<std::vector<SparseMove>>;

// Says what one rank does in a round; -1: it does not send, or not receive.
struct SparseTurn {
  Rank to = -1;
  Rank from = -1;
  int blocks = 0;
};

// Returns the turns of a rank, in the rounds in which it has any.
std::vector<SparseTurn> TurnsOf(const SparseSchedule& schedule, Rank rank);

struct SparsePhase {
  // Entries are sent as three transport messages: count, positions, values; two if the count is
  // known.
  static constexpr int kCounted = 3;
  static constexpr int kKnown = 2;

  enum class Entries {
    kNone,
    kSelected,  // those that a rank has selected
    kAsked      // as many as were asked for
  };

  SparseSchedule schedule;
  // In the place of a schedule, an all-to-all of one block from each rank to each other: the number
  // of ranks that a rank sends to at the same time, in each round.
  std::vector<int> exchanges = {};
  int messages = 1;   // transport messages of a move
  bool adds = false;  // the entries that arrive are added

  // A block has a fixed size, and the parts-th part of the entries.
  int64_t fixed_bytes = 0;
  Entries entries = Entries::kNone;
  int parts = 1;

  // In every period-th call of a unit, from the first on, the phase is run `repeats` times.
  int64_t period = 1;
  int repeats = 1;
  bool for_thresholds = false;  // counted by SparseCollective::periodic_bytes_received
};

}  // namespace dtrain
