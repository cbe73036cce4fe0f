#include "framework/comm/sparse_tree.h"

#include "framework/comm/power_of_two.h"

namespace dtrain {

SparseTree TreeOf(int ranks, Rank rank) {
  SparseTree tree;
  const int paired = PowerOfTwoWithin(ranks);
  if (rank >= paired) return {.parent = rank - paired, .children = {}};
  if (rank + paired < ranks) tree.children.push_back(rank + paired);
  for (int distance = 1; distance < paired; distance *= 2) {
    if ((rank & distance) != 0) {
      tree.parent = rank - distance;
      break;
    }
    tree.children.push_back(rank + distance);
  }
  return tree;
}

}  // namespace dtrain
