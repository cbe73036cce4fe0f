#include "framework/comm/sparse_tree.h"

#include "framework/comm/power_of_two.h"

namespace dtrain {

SparseSchedule TreeSchedule(int ranks) {
  SparseSchedule schedule;
  const int paired = PowerOfTwoWithin(ranks);
  if (paired < ranks) schedule.emplace_back();
  for (Rank rank = paired; rank < ranks; ++rank) schedule.back().push_back({rank, rank - paired});
  for (int distance = 1; distance < paired; distance *= 2) {
    schedule.emplace_back();
    for (Rank rank = 0; rank < paired; rank += 2 * distance) {
      schedule.back().push_back({rank + distance, rank});
    }
  }
  return schedule;
}

SparseTree TreeOf(int ranks, Rank rank) {
  SparseTree tree;
  for (const SparseTurn& turn : TurnsOf(TreeSchedule(ranks), rank)) {
    if (turn.from >= 0) tree.children.push_back(turn.from);
    if (turn.to >= 0) tree.parent = turn.to;
  }
  return tree;
}

}  // namespace dtrain
