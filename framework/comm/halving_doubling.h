// Schedules an all-reduce by recursive halving and doubling.  Ranks exchange halves of the vector
// with partners at distance 1, 2, 4, ..., until each has the sum of one block, then gather the
// blocks in the opposite order.  2 log2 P rounds with one message each; 2 (P-1)/P n bytes per rank.
// (Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
// IJHPCA 2005, section 4.)  The largest halves are exchanged with the nearest ranks, which share a
// node if nodes are filled in order.
//
// If P is not a power of two, and 2^k is the largest one below P, P - 2^k pairs of ranks are
// folded: one rank of each pair sends its vector to the other first and gets the sum last, which
// costs two more rounds with n bytes.
#pragma once

#include <vector>

#include "framework/comm/collective_schedule.h"

namespace dtrain {

CollectiveSchedule HalvingDoublingSchedule(int world, Rank rank, NodeMap node_of = {});

// Return the number of blocks, and of rounds, of a sum over so many ranks.
int HalvingDoublingBlocks(int members);
int HalvingDoublingRounds(int members);

// Adds to `schedule` the moves of member `index` of `members` (ranks) that sum the blocks from
// `first` on, beginning in `round`.
void AddHalvingDoubling(CollectiveSchedule& schedule, const std::vector<Rank>& members, int index,
                        int first, int round);

}  // namespace dtrain
