#include "framework/train/mean_state.h"

#include "framework/comm/gather.h"
#include "framework/core/check.h"

namespace dtrain {

std::vector<int64_t> StateWeights(const Sampler& sampler, int workers) {
  std::vector<int64_t> weights;
  for (int w = 0; w < workers; ++w) weights.push_back(sampler.ShareOf(0, w, workers).share.size());
  return weights;
}

void MeanOfStates(std::span<const float* const> states, std::span<const int64_t> weights,
                  std::span<float> mean) {
  DT_CHECK(states.size() == weights.size() && !states.empty());
  double all = 0;
  for (const int64_t weight : weights) all += static_cast<double>(weight);
  for (size_t i = 0; i < mean.size(); ++i) {
    double sum = 0;
    for (size_t w = 0; w < states.size(); ++w)
      sum += static_cast<double>(weights[w]) * states[w][i];
    mean[i] = static_cast<float>(sum / all);
  }
}

void GatherMeanState(Transport& transport, std::span<const float> mine,
                     std::span<const int64_t> weights, std::span<float> mean) {
  DT_CHECK(mine.size() == mean.size());
  std::vector<std::vector<float>> all(weights.size(), {mine.begin(), mine.end()});
  std::vector<const float*> states;
  for (size_t worker = 0; worker < all.size(); ++worker) {
    MoveFloats(transport, static_cast<Rank>(worker), 0, all[worker]);
    states.push_back(all[worker].data());
  }
  if (transport.rank() == 0) MeanOfStates(states, weights, mean);
  BroadcastFloats(transport, 0, mean);
}

}  // namespace dtrain
