#include "framework/strategies/sync/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "framework/core/random.h"
#include "framework/strategies/sync/merging.h"
#include "tests/strategies/strategies.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;

// Returns three gradients of 100 elements; T = start + bytes / 400.
LayerGradients GradientsAt(const std::vector<double>& ready, double start) {
  LayerGradients layer_gradients{{{0, 100}, {100, 200}, {200, 300}}};
  layer_gradients.ready = ready;
  layer_gradients.reduce_seconds = [start](int64_t bytes) {
    return start + static_cast<double>(bytes) / 400;
  };
  return layer_gradients;
}

std::map<std::string, double> Seconds(const LayerGradients& layer_gradients) {
  std::map<std::string, double> seconds;
  for (const SchedulePrediction& it : PredictSchedules(layer_gradients))
    seconds[it.name] = it.seconds;
  return seconds;
}

// Computed by hand: the first gradient is sent alone from 1 to 6, the others from 7 on.
TEST(ScheduleAdvice, PredictsEachAndTakesTheShortestStep) {
  const LayerGradients layer_gradients = GradientsAt({1, 4, 7}, 4);
  const std::map<std::string, double> expected = {
      {"naive", 7 + 15}, {"wfbp", 1 + 15}, {"single", 14}, {"allreduce", 14}, {"mgwfbp", 13}};
  EXPECT_EQ(Seconds(layer_gradients), expected);
  const std::vector<SchedulePrediction> all = PredictSchedules(layer_gradients);
  EXPECT_EQ(BestSchedule(all).name, "mgwfbp");
  EXPECT_THAT(BestSchedule(all).buckets, ElementsAre(Range{0, 100}, Range{100, 300}));
}

// If merging gains nothing, and if all gradients are ready at once, the advice is a schedule without measured times.
TEST(ScheduleAdvice, OfEqualOnesTheSimplerOne) {
  EXPECT_EQ(BestSchedule(PredictSchedules(GradientsAt({1, 4, 7}, 0))).name, "wfbp");
  EXPECT_EQ(BestSchedule(PredictSchedules(GradientsAt({7, 7, 7}, 4))).name, "single");
}

TEST(ScheduleAdvice, AutoHasTheBestBucketsOfAll) {
  const std::unique_ptr<Strategy> any = MakeStrategy("{name: auto}");
  EXPECT_TRUE(any->PlansByTime());
  EXPECT_EQ(any->Buckets({{{0, 100}, {100, 300}}}).size(), 2U) << "without times nothing is merged";
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Random random(seed, Purpose::kSelfTest);
    const double a = random.Uniform(0, 0, 3), b = a + random.Uniform(1, 0, 3);
    const LayerGradients layer_gradients =
        GradientsAt({a, b, b + random.Uniform(2, 0, 3)}, random.Uniform(3, 0, 4));
    const double step = PredictStep(layer_gradients, any->Buckets(layer_gradients));
    for (const auto& [name, seconds] : Seconds(layer_gradients)) {
      EXPECT_LE(step, seconds * (1 + 1e-9)) << name << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace dtrain
