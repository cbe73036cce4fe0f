// Evaluator: exact evaluation of a split, with bit-identical results for any number of ranks.
//
// The split is cut into fixed blocks of samples; rank r of P evaluates the blocks r, r + P, ...  Metrics are counted as
// integers.  Losses are summed in double, within a block in index order and over the blocks in block order.  So the
// result does not depend on which rank evaluated which block.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/core/bytes.h"
#include "framework/data/dataset.h"
#include "framework/nn/net.h"

namespace dtrain {

struct Evaluation {
  int64_t samples = 0;
  int64_t terms = 0;                 // number of terms of the loss (Batch): samples, or words
  double loss = 0;                   // mean over the terms
  std::vector<double> metrics;       // means, parallel to Net::metric_names()
  std::optional<double> perplexity;  // exp(loss); only for text
  std::optional<double> bleu;        // only if translations were made
  std::optional<int64_t> step;       // step of the evaluated weights if they are not the last
  DTRAIN_FIELDS(samples, terms, loss, metrics)  // the others are set on each rank
};

// Returns the number of samples of a block: 256, or 64 for sentences, whose scores over all words need far more memory.
int64_t EvaluationBlockOf(const Dataset& dataset);

// Returns the blocks of rank `rank` of `ranks`: every `ranks`-th one.
std::vector<Range> BlocksOfRank(const std::vector<Range>& all, int rank, int ranks);

// Returns the net's input for a block, for a forward pass without dropout.
NetInput InputOfBlock(const Batch& block);

// Holds the result of one block, for JoinEvaluations.
struct BlockResult {
  int64_t block = 0;
  int64_t samples = 0;
  int64_t terms = 0;
  double loss_sum = 0;
  std::vector<int64_t> counts;
  DTRAIN_FIELDS(block, samples, terms, loss_sum, counts)
};

// Evaluates this rank's blocks.
std::vector<BlockResult> EvaluateBlocks(Net& net, const Dataset& dataset, Split split,
                                        ConstArena weights, ConstArena state, int rank, int ranks);

// All ranks call it at a boundary, and all get the same result.  It has a perplexity if `dataset` is text.
Evaluation JoinEvaluations(Transport& transport, const Dataset& dataset,
                           const std::vector<BlockResult>& mine);

}  // namespace dtrain
