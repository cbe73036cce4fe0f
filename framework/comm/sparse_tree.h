// SparseTree: the binomial tree of gTop-k, for any number of ranks.
//
// Up: let Q be the largest power of two with Q <= P.  Ranks r >= Q send to rank r - Q first.  Then,
// for distance d = 1, 2, 4, ..., the ranks r whose lowest set bit is d send to rank r - d.  Rank 0
// is the root.  Down: the same in the opposite order.
#pragma once

#include <vector>

#include "framework/comm/sparse_schedule.h"
#include "framework/comm/transport.h"

namespace dtrain {

SparseSchedule TreeSchedule(int ranks);  // up

// The tree as one rank sees it.
struct SparseTree {
  Rank parent = -1;            // -1 for the root
  std::vector<Rank> children;  // in the order in which they send up; the result is sent in reverse
};

SparseTree TreeOf(int ranks, Rank rank);

}  // namespace dtrain
