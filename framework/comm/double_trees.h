// Schedules an all-reduce along two binary trees.  Each half of the vector is summed up its tree to
// the root and sent down again.  A rank that is an inner node of one tree is a leaf of the other,
// so all ranks send and receive about the same amount, 2 n bytes.  There are 2 log2 P rounds, but
// each round keeps only some ranks busy, so long vectors are split into chunks that follow one
// another through the trees.  (Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth
// broadcast, reduction and scan", Parallel Computing 35, 2009.)
#pragma once

#include "framework/comm/collective_schedule.h"

namespace dtrain {

CollectiveSchedule DoubleTreesSchedule(int world, Rank rank, NodeMap node_of = {});

}  // namespace dtrain
