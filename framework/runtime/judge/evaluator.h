// Evaluator: exact evaluation of a split, the same digits for any number of ranks.
//
// The split is cut into fixed blocks of samples; rank r of P takes blocks r, r + P, ...  Metrics
// are counted in integers, losses are summed in double, per block in index order and over the
// blocks in order, so nothing depends on who computed what.
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
  int64_t terms = 0;                 // of the loss (Batch): samples, or words
  double loss = 0;                   // mean over the terms
  std::vector<double> metrics;       // means, parallel to Net::metric_names()
  std::optional<double> perplexity;  // of text: exp(loss)
  std::optional<double> bleu;        // of translations, where they were made
  std::optional<int64_t> step;       // whose weights it is of, where they are not the last
  DTRAIN_FIELDS(samples, terms, loss, metrics)  // the others follow on each rank
};

// Samples of a block: 256, fewer where a sentence's scores for all words take the room of many
// images.
int64_t EvaluationBlockOf(const Dataset& dataset);

// What one rank found; to be joined by JoinEvaluations.
struct BlockResult {
  int64_t block = 0;
  int64_t samples = 0;
  int64_t terms = 0;
  double loss_sum = 0;
  std::vector<int64_t> counts;
  DTRAIN_FIELDS(block, samples, terms, loss_sum, counts)
};

// This rank's blocks.
std::vector<BlockResult> EvaluateBlocks(Net& net, const Dataset& dataset, Split split,
                                        ConstArena weights, ConstArena state, int rank, int ranks);

// All ranks call it at a boundary; all get the same answer.  With a perplexity where `dataset` is text.
Evaluation JoinEvaluations(Transport& transport, const Dataset& dataset,
                           const std::vector<BlockResult>& mine);

}  // namespace dtrain
