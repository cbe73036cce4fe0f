// All-reduce by nodes: vectors are summed inside each node, then between the nodes, and the sum is
// sent to all ranks of the node.
//
// The vector has as many slices as the smallest node has ranks.  The i-th rank of a node sums slice
// i of its node's vectors (one round, in rank order), then sums it with the i-th ranks of the other
// nodes by halving and doubling (halving_doubling.h), and sends it to all ranks of its node.  So a
// NIC carries 2 (N-1)/N n bytes per vector with N nodes, for any number of ranks that share it.  If
// some node has a single rank, this is a reduction to one leader per node.
#pragma once

#include "framework/comm/collective_schedule.h"

namespace dtrain {

CollectiveSchedule HierarchicalSchedule(int world, Rank rank, NodeMap node_of = {});

}  // namespace dtrain
