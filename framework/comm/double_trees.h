// All-reduce along two binary trees: each half of the vector is summed up its tree to the root and
// sent down again.  A rank that is inside one tree is a leaf of the other, so all send and receive
// about as much: 2 n bytes a rank.  2 log2 P rounds; but each round keeps only some ranks busy, so
// long vectors are cut into chunks that follow one another through the trees.  (Sanders, Speck and
// Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing
// 35, 2009.)
#pragma once

#include "framework/comm/collective_schedule.h"

namespace dtrain {

CollectiveSchedule DoubleTreesSchedule(int world, Rank rank, NodeMap node_of = {});

}  // namespace dtrain
