#include "framework/train/estimated_state.h"

#include <algorithm>

#include "framework/comm/gather.h"
#include "framework/data/batches.h"
#include "framework/evaluate/evaluator.h"
#include "framework/train/mean_state.h"

namespace dtrain {
namespace {

// A small batch at the end would have poor statistics, or none, so all have the same size, to a sample.
std::vector<Range> BatchesOf(const Dataset& dataset, int64_t samples) {
  const int64_t most = EvaluationBlockOf(dataset);
  const int count = static_cast<int>((samples + most - 1) / most);
  std::vector<Range> batches;
  for (int b = 0; b < count; ++b) batches.push_back(SplitEvenly({0, samples}, count, b));
  return batches;
}

}  // namespace

int64_t SamplesOfEstimate(const RunConfig& config, const Graph& graph, const Dataset& dataset) {
  const bool replicas =
      config.strategy->traits().model == ModelPlace::kReplicas && config.workers > 1;
  const std::string& from = config.evaluate.statistics;
  if (from != "estimate" && !(from == "auto" && replicas)) return 0;
  const bool any = std::ranges::any_of(graph.layers(), [](const GraphLayer& layer) {
    return !layer.states.empty() && !layer.frozen;
  });
  return any ? std::min(config.evaluate.statistics_samples, dataset.size(Split::kTrain)) : 0;
}

int64_t EstimateBatchOf(const Dataset& dataset, int64_t samples) {
  return samples == 0 ? 0 : BatchesOf(dataset, samples).front().size();
}

std::vector<BatchState> EstimateBatches(Net& net, const Dataset& dataset, const Sampler& sampler,
                                        int64_t samples, ConstArena weights,
                                        std::span<const float> state, int rank, int ranks) {
  const std::vector<Range> all = BatchesOf(dataset, samples);
  const std::vector<Range> mine = BlocksOfRank(all, rank, ranks);
  std::vector<int64_t> order;
  sampler.Shuffle(0, order);
  std::vector<BatchState> found;
  const BroughtModel model = net.Bring(weights, state.data());
  Prefetcher batches(dataset, all.front().size(),
                     EvaluationBatches(dataset, Split::kTrain, mine, std::move(order)),
                     /*depth=*/2);
  while (const Batch* batch = batches.Next()) {
    const int64_t number = rank + static_cast<int64_t>(found.size()) * ranks;
    found.push_back({number, batch->samples, {state.begin(), state.end()}});
    net.EstimateState(model.weights, found.back().state.data(), InputOfBlock(*batch));
  }
  return found;
}

void JoinStates(Transport& transport, const std::vector<BatchState>& mine, std::span<float> mean) {
  std::vector<BatchState> all;
  for (const std::string& bytes : Gather(transport, ToBytes(mine))) {
    for (BatchState& theirs : FromBytes<std::vector<BatchState>>(bytes)) {
      all.push_back(std::move(theirs));
    }
  }
  std::ranges::sort(all, {}, &BatchState::batch);
  std::vector<const float*> states;
  std::vector<int64_t> samples;
  for (const BatchState& one : all) {
    states.push_back(one.state.data());
    samples.push_back(one.samples);
  }
  if (transport.rank() == 0) MeanOfStates(states, samples, mean);
  BroadcastFloats(transport, 0, mean);
}

}  // namespace dtrain
