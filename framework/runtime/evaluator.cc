#include "framework/runtime/evaluator.h"

#include <algorithm>
#include <cstring>

#include "framework/comm/gather.h"
#include "framework/data/prefetch.h"
#include "framework/data/sampler.h"

namespace dtrain {
namespace {

template <class T>
void Append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <class T>
T Take(const std::string& bytes, size_t& at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  at += sizeof(value);
  return value;
}

std::string Pack(const std::vector<BlockResult>& results) {
  std::string bytes;
  for (const BlockResult& result : results) {
    Append(bytes, result.block);
    Append(bytes, result.samples);
    Append(bytes, result.loss_sum);
    Append(bytes, static_cast<int64_t>(result.counts.size()));
    for (const int64_t count : result.counts) Append(bytes, count);
  }
  return bytes;
}

void Unpack(const std::string& bytes, std::vector<BlockResult>& results) {
  for (size_t at = 0; at < bytes.size();) {
    BlockResult result;
    result.block = Take<int64_t>(bytes, at);
    result.samples = Take<int64_t>(bytes, at);
    result.loss_sum = Take<double>(bytes, at);
    result.counts.resize(static_cast<size_t>(Take<int64_t>(bytes, at)));
    for (int64_t& count : result.counts) count = Take<int64_t>(bytes, at);
    results.push_back(std::move(result));
  }
}

Evaluation Sum(std::vector<BlockResult> results) {
  std::sort(results.begin(), results.end(),
            [](const BlockResult& a, const BlockResult& b) { return a.block < b.block; });
  Evaluation sum;
  std::vector<int64_t> counts(results.empty() ? 0 : results[0].counts.size());
  for (const BlockResult& result : results) {
    sum.samples += result.samples;
    sum.loss += result.loss_sum;
    for (size_t m = 0; m < counts.size(); ++m) counts[m] += result.counts[m];
  }
  const double samples = static_cast<double>(std::max<int64_t>(sum.samples, 1));
  sum.loss /= samples;
  for (const int64_t count : counts) sum.metrics.push_back(static_cast<double>(count) / samples);
  return sum;
}

std::string PackEvaluation(const Evaluation& evaluation) {
  std::string bytes;
  Append(bytes, evaluation.samples);
  Append(bytes, evaluation.loss);
  for (const double metric : evaluation.metrics) Append(bytes, metric);
  return bytes;
}

Evaluation UnpackEvaluation(const std::string& bytes) {
  Evaluation evaluation;
  size_t at = 0;
  evaluation.samples = Take<int64_t>(bytes, at);
  evaluation.loss = Take<double>(bytes, at);
  while (at < bytes.size()) evaluation.metrics.push_back(Take<double>(bytes, at));
  return evaluation;
}

}  // namespace

std::vector<BlockResult> EvaluateBlocks(Net& net, const Dataset& dataset, Split split,
                                        const float* weights, const float* state, int rank,
                                        int ranks) {
  const std::vector<Range> all = EvaluationBlocks(dataset.size(split), kEvaluationBlock);
  std::vector<Range> mine;
  for (size_t b = static_cast<size_t>(rank); b < all.size(); b += static_cast<size_t>(ranks)) {
    mine.push_back(all[b]);
  }
  std::vector<BlockResult> results;
  Prefetcher batches(dataset.fields(), kEvaluationBlock, EvaluationBatches(dataset, split, mine));
  while (const Batch* batch = batches.Next()) {
    NetInput input;
    input.fields = batch->fields;
    input.samples = batch->samples;
    const EvaluateResult result = net.Evaluate(weights, state, input);
    const int64_t block = rank + static_cast<int64_t>(results.size()) * ranks;
    results.push_back({block, result.samples, result.loss_sum, result.metric_counts});
  }
  return results;
}

Evaluation JoinEvaluations(Transport& transport, const std::vector<BlockResult>& mine) {
  std::vector<BlockResult> all;
  for (const std::string& bytes : Gather(transport, Pack(mine))) Unpack(bytes, all);
  std::string answer;
  if (transport.rank() == 0) answer = PackEvaluation(Sum(std::move(all)));
  return UnpackEvaluation(Broadcast(transport, answer));
}

}  // namespace dtrain
