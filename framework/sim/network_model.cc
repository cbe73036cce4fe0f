#include "framework/sim/network_model.h"

namespace dtrain {

std::vector<int> NodesInOrder(int ranks, int per_node) {
  std::vector<int> node_of(ranks);
  for (int rank = 0; rank < ranks; ++rank) node_of[rank] = rank / per_node;
  return node_of;
}

}  // namespace dtrain
