// Evaluator: exact evaluation of a split, the same digits for any number of ranks.
//
// The split is cut into fixed blocks of samples; rank r of P takes blocks r, r + P, ...  Metrics are
// counted in integers, losses are summed in double, per block in index order and over the blocks in
// order, so nothing depends on who computed what.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/data/dataset.h"
#include "framework/nn/net.h"

namespace dtrain {

struct Evaluation {
  int64_t samples = 0;
  double loss = 0;               // mean
  std::vector<double> metrics;   // means, parallel to Net::metric_names()
};

inline constexpr int64_t kEvaluationBlock = 256;

// What one rank found; to be joined by JoinEvaluations.
struct BlockResult {
  int64_t block = 0;
  int64_t samples = 0;
  double loss_sum = 0;
  std::vector<int64_t> counts;
};

// This rank's blocks.
std::vector<BlockResult> EvaluateBlocks(Net& net, const Dataset& dataset, Split split,
                                        const float* weights, const float* state, int rank,
                                        int ranks);

// All ranks call it at rest; all get the same answer.
Evaluation JoinEvaluations(Transport& transport, const std::vector<BlockResult>& mine);

}  // namespace dtrain
