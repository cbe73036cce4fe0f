#include "framework/evaluate/evaluator.h"

#include <algorithm>
#include <cmath>

#include "framework/comm/gather.h"
#include "framework/core/bytes.h"
#include "framework/data/batches.h"
#include "framework/data/sampler.h"

namespace dtrain {
namespace {

Evaluation Sum(std::vector<BlockResult> results) {
  std::ranges::sort(results, {}, &BlockResult::block);
  Evaluation sum;
  std::vector<int64_t> counts(results.empty() ? 0 : results[0].counts.size());
  for (const BlockResult& result : results) {
    sum.samples += result.samples;
    sum.terms += result.terms;
    sum.loss += result.loss_sum;
    for (size_t m = 0; m < counts.size(); ++m) counts[m] += result.counts[m];
  }
  const double samples = static_cast<double>(sum.samples);
  sum.loss /= static_cast<double>(std::max<int64_t>(sum.terms, 1));
  for (const int64_t count : counts) sum.metrics.push_back(static_cast<double>(count) / samples);
  return sum;
}

}  // namespace

int64_t EvaluationBlockOf(const Dataset& dataset) {
  return dataset.sentence_pairs() == nullptr ? 256 : 64;
}

std::vector<Range> BlocksOfRank(const std::vector<Range>& all, int rank, int ranks) {
  std::vector<Range> mine;
  for (size_t b = static_cast<size_t>(rank); b < all.size(); b += static_cast<size_t>(ranks)) {
    mine.push_back(all[b]);
  }
  return mine;
}

NetInput InputOfBlock(const Batch& block) {
  NetInput input;
  input.fields = block.fields;
  input.samples = block.samples;
  input.on_device = block.on_device;
  return input;
}

std::vector<BlockResult> EvaluateBlocks(Net& net, const Dataset& dataset, Split split,
                                        ConstArena weights, ConstArena state, int rank, int ranks) {
  const int64_t size = EvaluationBlockOf(dataset);
  const std::vector<Range> mine =
      BlocksOfRank(EvaluationBlocks(dataset.size(split), size), rank, ranks);
  std::vector<BlockResult> results;
  const BroughtModel model = net.Bring(weights, state);
  Prefetcher batches(dataset, std::min(size, dataset.size(split)),
                     EvaluationBatches(dataset, split, mine), /*depth=*/2);
  while (const Batch* batch = batches.Next()) {
    const EvaluateResult result = net.Evaluate(model.weights, model.state, InputOfBlock(*batch));
    const int64_t block = rank + static_cast<int64_t>(results.size()) * ranks;
    results.push_back({block, result.samples, batch->terms, result.loss_sum * batch->loss_unit,
                       result.metric_counts});
  }
  return results;
}

Evaluation JoinEvaluations(Transport& transport, const Dataset& dataset,
                           const std::vector<BlockResult>& mine) {
  std::vector<BlockResult> all;
  for (const std::string& bytes : Gather(transport, ToBytes(mine))) {
    const auto theirs = FromBytes<std::vector<BlockResult>>(bytes);
    all.insert(all.end(), theirs.begin(), theirs.end());
  }
  std::string answer;
  if (transport.rank() == 0) answer = ToBytes(Sum(std::move(all)));
  auto evaluation = FromBytes<Evaluation>(Broadcast(transport, answer));
  if (dataset.sentence_pairs() != nullptr) evaluation.perplexity = std::exp(evaluation.loss);
  return evaluation;
}

}  // namespace dtrain
