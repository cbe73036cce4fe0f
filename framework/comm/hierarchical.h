// All-reduce by nodes: summed inside each node, between the nodes, and handed out inside again.
//
// The vector has as many slices as the smallest node has ranks.  The i-th rank of a node sums slice
// i of its node's vectors (one round, in rank order), then with the i-th ranks of the other nodes by
// halving and doubling (halving_doubling.h), and sends it to all of its node.  So a NIC carries
// 2 (N-1)/N n bytes a vector for N nodes, however many ranks share it.  Where one node has a single
// rank that is reducing to one leader a node.
#pragma once

#include "framework/comm/collective_schedule.h"

namespace dtrain {

CollectiveSchedule HierarchicalSchedule(int world, Rank rank, NodeMap node_of = {});

}  // namespace dtrain
