// ArenaLayout: where each parameter (or state vector) lies in its flat arena.
//
// Weights, gradients and solver vectors share one layout: parameters in the order in which the
// backward pass finishes their gradients, without gaps, so that a fusion bucket or a server shard is
// one Range of all of them.  Inside a parameter the order is plain (PyTorch's).
#pragma once

#include <string>
#include <vector>

#include "framework/core/range.h"

namespace dtrain {

struct ArenaEntry {
  std::string name;  // "conv1.weight"
  std::vector<int64_t> shape;
  Range range;  // elements
  bool weight_decay = true;
};

struct ArenaLayout {
  std::vector<ArenaEntry> entries;  // by range
  int64_t size() const { return entries.empty() ? 0 : entries.back().range.end; }
};

}  // namespace dtrain
