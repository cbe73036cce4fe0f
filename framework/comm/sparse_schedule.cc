#include "framework/comm/sparse_schedule.h"

namespace dtrain {

std::vector<SparseTurn> TurnsOf(const SparseSchedule& schedule, Rank rank) {
  std::vector<SparseTurn> turns;
  for (const std::vector<SparseMove>& round : schedule) {
    SparseTurn turn;
    for (const SparseMove& move : round) {
      if (move.from == rank) turn.to = move.to;
      if (move.to == rank) turn.from = move.from;
      if (move.from == rank || move.to == rank) turn.blocks = move.blocks;
    }
    if (turn.blocks > 0) turns.push_back(turn);
  }
  return turns;
}

}  // namespace dtrain
