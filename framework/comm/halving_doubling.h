// All-reduce by recursive halving and doubling: ranks exchange halves of the vector with partners at
// distance 1, 2, 4, ..., so that each has the sum of one block, then gather the blocks the other
// way around.  2 log2 P rounds with one message each; 2 (P-1)/P n bytes a rank.  (Thakur,
// Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA
// 2005, section 4.)  The largest halves go to the nearest ranks, which share a node where nodes are
// filled in order.
//
// The power of two is met by folding: of so many pairs as there are ranks too many, one hands its
// vector to the other first and gets the sum last, which costs two rounds with n bytes.
#pragma once

#include <vector>

#include "framework/comm/collective_schedule.h"

namespace dtrain {

CollectiveSchedule HalvingDoublingSchedule(int world, Rank rank, NodeMap node_of = {});

// How many blocks the sum of a part of the vector over so many ranks works with, and in how many rounds.
int HalvingDoublingBlocks(int members);
int HalvingDoublingRounds(int members);

// Adds to `schedule` the moves by which member `index` of `members` (ranks) sums the blocks from `first`
// on, beginning in `round`.
void AddHalvingDoubling(CollectiveSchedule& schedule, const std::vector<Rank>& members, int index,
                        int first, int round);

}  // namespace dtrain
