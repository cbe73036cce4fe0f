// SparseTree: the binomial tree of gTop-k, for any number of ranks.
//
// Up: ranks from the largest power of two within P on give theirs to the rank that much below; then, for
// distance 1, 2, 4, ..., those whose number has just that lowest bit give theirs to the rank that far
// below.  Rank 0 is the root.  Down: the same way back.
#pragma once

#include <vector>

#include "framework/comm/transport.h"

namespace dtrain {

struct SparseTree {
  Rank parent = -1;            // of the root: none
  std::vector<Rank> children;  // in the order in which they give; they get in the opposite order
};

SparseTree TreeOf(int ranks, Rank rank);

}  // namespace dtrain
