#include "framework/train/mean_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/comm/local/local_world.h"

namespace dtrain {
namespace {

using testing::ElementsAre;

TEST(MeanState, IsWeightedByTheSharesOfAFullBatch) {
  const Sampler sampler(1, 13, 10);  // the second batch has 3 samples
  EXPECT_THAT(StateWeights(sampler, 4), ElementsAre(3, 3, 2, 2));
  const std::vector<float> a = {1, 8}, b = {4, 16};
  const float* const states[] = {a.data(), b.data()};
  const int64_t weights[] = {2, 1};
  std::vector<float> mean(2);
  MeanOfStates(states, weights, mean);
  EXPECT_THAT(mean, ElementsAre(2, 32.0f / 3));
}

TEST(MeanState, OfEqualStatesIsTheStateToTheBit) {
  const std::vector<float> state = {0.1f, 1e-30f, 3.3333333f, -7e20f};
  const std::vector<const float*> states(7, state.data());
  const std::vector<int64_t> weights = {19, 19, 18, 18, 18, 18, 18};
  std::vector<float> mean(state.size());
  MeanOfStates(states, weights, mean);
  EXPECT_EQ(mean, state);
}

// Three workers and a server.
TEST(MeanState, EveryRankGetsTheMeanOfTheWorkers) {
  LocalWorld::Run(4, [](Transport& transport) {
    const std::vector<float> mine = {static_cast<float>(transport.rank()), 5};
    const int64_t weights[] = {1, 1, 2};
    std::vector<float> mean(2);
    GatherMeanState(transport, mine, weights, mean);
    EXPECT_THAT(mean, ElementsAre(1.25f, 5));
  });
}

}  // namespace
}  // namespace dtrain
