#include "framework/cluster/compute_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "framework/cluster/noise.h"
#include "framework/core/error.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;

// Returns a profile for 10 samples: forward 1 + 2 + 3 ms, backward 4 + 5 + 6 ms; the middle layer has no parameters.
ModelProfile Times() {
  ModelProfile profile;
  profile.model = "three";
  profile.batch = 10;
  profile.layers = {
      {.name = "a", .params = 100, .forward_seconds = 1e-3, .backward_seconds = 4e-3, .flops = 9},
      {.name = "b", .params = 0, .forward_seconds = 2e-3, .backward_seconds = 5e-3, .flops = 9},
      {.name = "c", .params = 50, .forward_seconds = 3e-3, .backward_seconds = 6e-3, .flops = 9}};
  return profile;
}

ModelProfile WithoutTimes(double flops) {
  ModelProfile profile = Times();
  for (LayerProfile& layer : profile.layers) {
    layer.forward_seconds = 0;
    layer.backward_seconds = 0;
    layer.flops = flops;
  }
  return profile;
}

constexpr Nanos kMs = 1'000'000;

TEST(ComputeModel, TakesTheProfilesTimes) {
  const ComputeModel model(ClusterConfig(), Times(), 1, 1);
  const StepTiming timing = model.Step(0, 0, 10);
  EXPECT_EQ(timing.pause, 0);
  EXPECT_EQ(timing.forward, 6 * kMs);
  EXPECT_THAT(timing.ready, ElementsAre(12 * kMs, 21 * kMs));
  EXPECT_EQ(timing.end, 21 * kMs);
}

TEST(ComputeModel, ScalesWithTheSamples) {
  const ComputeModel model(ClusterConfig(), Times(), 1, 1);
  EXPECT_EQ(model.Step(0, 0, 20).end, 42 * kMs);
  EXPECT_THAT(model.Step(0, 0, 5).ready, ElementsAre(6 * kMs, 10'500'000));
}

TEST(ComputeModel, TakesFlopsWhereTimesAreNotKnown) {
  ClusterConfig cluster;
  cluster.gflops = 50;
  const ComputeModel model(cluster, WithoutTimes(1e9), 1, 1);
  const StepTiming timing = model.Step(0, 0, 10);
  EXPECT_EQ(timing.end, 60 * kMs);
  EXPECT_EQ(timing.forward, 20 * kMs);
  EXPECT_THAT(timing.ready, ElementsAre(33'333'333, 60 * kMs));
}

TEST(ComputeModel, ALayerAtTheInputWithoutParametersEndsTheStep) {
  ModelProfile profile = Times();
  profile.layers[0].params = 0;
  profile.layers[1].params = 7;
  const StepTiming timing = ComputeModel(ClusterConfig(), profile, 1, 1).Step(0, 0, 10);
  EXPECT_THAT(timing.ready, ElementsAre(12 * kMs, 17 * kMs));
  EXPECT_EQ(timing.end, 21 * kMs);
}

// Gradient c is ready after 18 ms and a after 30 ms, later than the layers' times alone would give.
ModelProfile WithReady() {
  ModelProfile profile = Times();
  profile.layers[0].ready_seconds = 0.030;
  profile.layers[2].ready_seconds = 0.018;
  return profile;
}

TEST(ComputeModel, GradientsAreReadyAsTheyWereMeasured) {
  const ComputeModel model(ClusterConfig(), WithReady(), 1, 1);
  const StepTiming timing = model.Step(0, 0, 10);
  EXPECT_EQ(timing.forward, 6 * kMs);
  EXPECT_THAT(timing.ready, ElementsAre(18 * kMs, 30 * kMs));
  EXPECT_EQ(timing.end, 30 * kMs);
  EXPECT_THAT(model.Step(0, 0, 5).ready, ElementsAre(9 * kMs, 15 * kMs));
  ClusterConfig slow;
  slow.slowdown = {2};
  EXPECT_THAT(ComputeModel(slow, WithReady(), 1, 1).Step(0, 0, 10).ready,
              ElementsAre(36 * kMs, 60 * kMs));
  slow.step_seconds = 0.09;
  EXPECT_THAT(ComputeModel(slow, WithReady(), 1, 1).Step(0, 0, 10).ready,
              ElementsAre(108 * kMs, 180 * kMs));
}

// A step may end after its last gradient; no gradient is ready before the one in front of it.
TEST(ComputeModel, AStepEndsNoEarlierThanItsLayers) {
  ModelProfile profile = WithReady();
  profile.layers[0].ready_seconds = 0.015;
  const StepTiming timing = ComputeModel(ClusterConfig(), profile, 1, 1).Step(0, 0, 10);
  EXPECT_THAT(timing.ready, ElementsAre(18 * kMs, 18 * kMs));
  EXPECT_EQ(timing.end, 21 * kMs);
  profile.layers[2].ready_seconds = 0.002;
  EXPECT_EQ(ComputeModel(ClusterConfig(), profile, 1, 1).Step(0, 0, 10).forward, 2 * kMs);
}

TEST(ComputeModel, ReadyTimesOfSomeGradientsSayNothing) {
  ModelProfile profile = WithReady();
  profile.layers[2].ready_seconds.reset();
  EXPECT_THAT(ComputeModel(ClusterConfig(), profile, 1, 1).Step(0, 0, 10).ready,
              ElementsAre(12 * kMs, 21 * kMs));
}

TEST(ComputeModel, ReadyTimesNeedNoOthersButABatch) {
  ModelProfile profile = WithReady();
  for (LayerProfile& layer : profile.layers)
    layer.forward_seconds = layer.backward_seconds = layer.flops = 0;
  const StepTiming timing = ComputeModel(ClusterConfig(), profile, 1, 1).Step(0, 0, 10);
  EXPECT_EQ(timing.end, 30 * kMs);
  EXPECT_EQ(timing.forward, 10 * kMs);
  for (LayerProfile& layer : profile.layers) layer.flops = 1e12;
  EXPECT_EQ(ComputeModel(ClusterConfig(), profile, 1, 1).Step(0, 0, 10).end, 30 * kMs);
  profile.batch = 0;
  EXPECT_THROW(ComputeModel(ClusterConfig(), profile, 1, 1), ConfigError);
}

// Worker 1 has fewer samples and is slower.
TEST(ComputeModel, TheSlowestWorkerCounts) {
  ClusterConfig cluster;
  cluster.slowdown = {1, 4};
  cluster.jitter = 0.5;
  cluster.pauses = {.probability = 1, .seconds = 1};
  EXPECT_THAT(UsualReady(cluster, WithReady(), {10, 5}), ElementsAre(0.036, 0.060));
  cluster.slowdown = {1, 1};
  EXPECT_THAT(UsualReady(cluster, WithReady(), {10, 5}), ElementsAre(0.018, 0.030));
}

TEST(ComputeModel, AStepTakesAtLeastStepSeconds) {
  ClusterConfig cluster;
  cluster.step_seconds = 0.042;
  const ComputeModel model(cluster, Times(), 1, 1);
  EXPECT_EQ(model.Step(0, 0, 10).end, 42 * kMs);
  EXPECT_THAT(model.Step(0, 0, 10).ready, ElementsAre(24 * kMs, 42 * kMs));  // scaled in proportion
  EXPECT_EQ(model.Step(0, 0, 40).end, 84 * kMs);
}

TEST(ComputeModel, WithoutAnyCostLayersAreEqual) {
  ClusterConfig cluster;
  cluster.step_seconds = 0.009;
  ModelProfile profile = WithoutTimes(0);
  profile.batch = 0;  // the profile must not be used
  const StepTiming timing = ComputeModel(cluster, profile, 1, 1).Step(0, 0, 1);
  EXPECT_EQ(timing.forward, 3 * kMs);
  EXPECT_THAT(timing.ready, ElementsAre(5 * kMs, 9 * kMs));
  EXPECT_EQ(ComputeModel(ClusterConfig(), profile, 1, 1).Step(0, 0, 1).end, 0);
  EXPECT_THAT(ComputeModel(cluster, ModelProfile(), 1, 1).Step(0, 0, 1).ready, ElementsAre());
}

TEST(ComputeModel, SlowdownMultipliesEverything) {
  ClusterConfig cluster;
  cluster.slowdown = {1, 4};
  cluster.step_seconds = 0.03;
  const ComputeModel model(cluster, Times(), 4, 1);
  EXPECT_EQ(model.Step(1, 0, 10).end, 30 * kMs);
  EXPECT_EQ(model.Step(2, 0, 10).end, 120 * kMs);
}

TEST(ComputeModel, JitterIsMultipliedToo) {
  ClusterConfig cluster;
  cluster.jitter = 0.2;
  const ComputeModel model(cluster, Times(), 2, 5);
  const double factor = JitterFactor(0.2, 5, 1, 17);
  EXPECT_NE(factor, 1);
  EXPECT_EQ(model.Step(1, 17, 10).end, std::llround(21 * kMs * factor));
}

TEST(ComputeModel, PausesComeBeforeTheStepAndAreNotMultiplied) {
  ClusterConfig cluster;
  cluster.slowdown = {2};
  cluster.pauses = {.probability = 1, .seconds = 0.1};
  const StepTiming timing = ComputeModel(cluster, Times(), 1, 1).Step(0, 0, 10);
  EXPECT_EQ(timing.pause, 100 * kMs);
  EXPECT_EQ(timing.forward, 112 * kMs);
  EXPECT_THAT(timing.ready, ElementsAre(124 * kMs, 142 * kMs));
  EXPECT_EQ(timing.end, 142 * kMs);
}

TEST(ComputeModel, ATraceReplacesAllButTheProportions) {
  ClusterConfig cluster;
  cluster.slowdown = {3};
  cluster.jitter = 0.5;
  cluster.step_seconds = 1;
  cluster.pauses = {.probability = 1, .seconds = 1};
  ComputeModel model(cluster, Times(), 2, 1);
  model.UseTrace({{0.021}, {0.042, 0.063}});
  EXPECT_EQ(model.Step(0, 9, 10).end, 21 * kMs);
  EXPECT_EQ(model.Step(1, 0, 10).end, 42 * kMs);
  EXPECT_EQ(model.Step(1, 1, 99).end, 63 * kMs);
  EXPECT_THAT(model.Step(1, 2, 10).ready, ElementsAre(24 * kMs, 42 * kMs));
}

TEST(ComputeModel, VectorsGoAtMemorySpeed) {
  ClusterConfig cluster;
  cluster.memory_gbyte_s = 4;
  EXPECT_EQ(ComputeModel(cluster, Times(), 1, 1).VectorTime(4'000'000), kMs);
}

TEST(ComputeModel, ErrorsAreNamed) {
  ModelProfile profile = Times();
  profile.batch = 0;
  try {
    ComputeModel(ClusterConfig(), profile, 1, 1);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "the profile of model 'three' has a batch of no samples");
    EXPECT_EQ(error.hint(), "measure it again: dtrain time --profile FILE");
  }
  ClusterConfig cluster;
  cluster.slowdown = {1, 2};
  EXPECT_THROW(ComputeModel(cluster, Times(), 3, 1), ConfigError);
}

TEST(ComputeModelDeathTest, ATraceIsForAllWorkers) {
  ComputeModel model(ClusterConfig(), Times(), 2, 1);
  EXPECT_DEATH(model.UseTrace({{1.0}}), "traces of 1 workers for 2");
  EXPECT_DEATH(model.UseTrace({{1.0}, {}}), "a worker's trace is empty");
}

TEST(StepNoise, DeviationsBelongTogether) {
  EXPECT_NEAR(RelativeDeviationOf(0.5), 0.53294, 1e-5);
  EXPECT_NEAR(LogDeviationOf(RelativeDeviationOf(0.5)), 0.5, 1e-12);
  EXPECT_NEAR(LogDeviationOf(0.01), 0.01, 1e-6);
}

TEST(StepNoise, JitterHasMeanOneAndItsDeviation) {
  constexpr int kSteps = 200'000;
  const double deviation = RelativeDeviationOf(0.5);
  double sum = 0;
  double squares = 0;
  double log_sum = 0;
  for (int64_t step = 0; step < kSteps; ++step) {
    const double factor = JitterFactor(deviation, 3, 0, step);
    sum += factor;
    squares += factor * factor;
    log_sum += std::log(factor);
  }
  const double mean = sum / kSteps;
  EXPECT_NEAR(mean, 1, 0.005);
  EXPECT_NEAR(std::sqrt(squares / kSteps - mean * mean), deviation, 0.015);
  EXPECT_NEAR(log_sum / kSteps, -0.125, 0.005);
}

TEST(StepNoise, JitterDependsOnSeedWorkerAndStepOnly) {
  const double factor = JitterFactor(0.3, 1, 2, 3);
  EXPECT_EQ(JitterFactor(0.3, 1, 2, 3), factor);
  EXPECT_NE(JitterFactor(0.3, 2, 2, 3), factor);
  EXPECT_NE(JitterFactor(0.3, 1, 3, 3), factor);
  EXPECT_NE(JitterFactor(0.3, 1, 2, 4), factor);
  EXPECT_EQ(JitterFactor(0, 1, 2, 3), 1);
}

TEST(StepNoise, PausesHappenWithTheirProbability) {
  int pauses = 0;
  double jitter_sum = 0;
  for (int64_t step = 0; step < 100'000; ++step) {
    if (!PausesIn(0.05, 1, 0, step)) continue;
    ++pauses;
    jitter_sum += JitterFactor(0.2, 1, 0, step);
  }
  EXPECT_NEAR(pauses, 5000, 250);
  EXPECT_NEAR(jitter_sum / pauses, 1, 0.02);  // independent of the jitter
  EXPECT_FALSE(PausesIn(0, 1, 0, 0));
  EXPECT_TRUE(PausesIn(1, 1, 0, 0));
}

}  // namespace
}  // namespace dtrain
