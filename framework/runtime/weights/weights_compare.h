// How two sets of weights differ, name by name (`dtrain ckpt diff`).
#pragma once

#include <string>
#include <vector>

#include "framework/runtime/weights/rank_checkpoint.h"
#include "framework/runtime/weights/weights_file.h"

namespace dtrain {

struct TensorDifference {
  std::string name;
  std::string what;      // why no numbers are compared ("only in the first", shapes); else ""
  double largest = 0;    // |a - b|; infinity where one is a number and the other none
  double relative = 0;   // ||a - b||2 / ||a||2
  int64_t elements = 0;  // that differ in a bit
};

// Those that differ at all, parameters and statistics, in name order.
std::vector<TensorDifference> Compare(const StoredWeights& a, const StoredWeights& b);

// Names in either of them.
int64_t CountTensors(const StoredWeights& a, const StoredWeights& b);

// What two rank files of one rank differ in, in the order of the first: vectors as tensors ("worker 1:
// residual conv1.weight", where they are as long as the parameters), numbers in words.
std::vector<TensorDifference> Compare(const RankCheckpoint& a, const RankCheckpoint& b,
                                      const ArenaLayout& parameters);

// NaN and infinities in a rank's vectors.
int64_t CountNonFinite(const RankCheckpoint& file);

// NaN and infinities in parameters and statistics, and in the solver's vectors.
struct NonFinite {
  int64_t weights = 0;
  int64_t solver = 0;
};
NonFinite CountNonFinite(const StoredWeights& stored);

}  // namespace dtrain
