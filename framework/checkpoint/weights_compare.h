// Comparison of two sets of weights by name (`dtrain ckpt diff`).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "framework/checkpoint/rank_checkpoint.h"
#include "framework/checkpoint/weights_file.h"

namespace dtrain {

struct TensorDifference {
  std::string name;
  // Why no values are compared ("only in the first", shapes); else "".
  std::string what;
  double largest = 0;    // max |a - b|; infinity if only one of a and b is finite
  double relative = 0;   // ||a - b||2 / ||a||2
  int64_t elements = 0;  // number of elements that differ in a bit
};

// Returns the parameters and statistics that differ, in name order.
std::vector<TensorDifference> Compare(const StoredWeights& a, const StoredWeights& b);

// Returns the number of names that are in a or b.
int64_t CountTensors(const StoredWeights& a, const StoredWeights& b);

// Returns the fields in which two rank files of the same rank differ, in the order of the first.  Vectors are compared
// by parameter if they have the parameters' length ("worker 1: residual conv1.weight"), numbers are shown as text.
std::vector<TensorDifference> Compare(const RankCheckpoint& a, const RankCheckpoint& b,
                                      const ArenaLayout& parameters);

// Returns the number of NaN and infinities among these values, or in a rank's vectors.
int64_t CountNonFinite(std::span<const float> values);
int64_t CountNonFinite(const RankCheckpoint& file);

// Holds the numbers of NaN and infinities in parameters and statistics, and in the solver's vectors.
struct NonFinite {
  int64_t weights = 0;
  int64_t solver = 0;
};
NonFinite CountNonFinite(const StoredWeights& stored);

}  // namespace dtrain
