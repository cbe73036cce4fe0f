// Tests steps that are captured as a graph and repeated (device/step_graph.h): they are those that are submitted kernel
// by kernel, and a host that looks late sees what one that looks at once would have seen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/cuda/standin_counts.h"
#include "tests/cuda/step_rig.h"

namespace dtrain {
namespace {

constexpr char kSolver[] =
    "{name: adam, lr: 0.01, weight_decay: 0.01, clip_norm: 0.5, schedule: {name: step, "
    "every: 0.01, factor: 0.5}}";

class DroppedRig : public NormedRig {
 public:
  explicit DroppedRig(const std::string& solver = kSolver)
      : NormedRig(DeviceUnderTest(), solver, "0.3") {}
};

// The learning rate, the masks of dropout and Adam's corrections change from step to step.
TEST(StepGraphs, CapturedStepsAreTheOthersToTheBit) {
  DroppedRig captured, direct;
  captured.BringBatch();
  for (int step = 0; step < 8; ++step) {
    const StepOutcome got = captured.Step(), want = direct.Step();
    ASSERT_EQ(got.loss_sum, want.loss_sum) << step;
    ASSERT_TRUE(got.finite);
  }
  EXPECT_EQ(captured.Weights(), direct.Weights());
  EXPECT_EQ(captured.Statistics(), direct.Statistics());
}

TEST(StepGraphs, AHostThatLooksLateSeesEveryLoss) {
  DroppedRig late, direct;
  late.BringBatch();
  late.lags = true;
  std::vector<double> want, got;
  for (int step = 0; step < 150; ++step) {
    want.push_back(direct.Step().loss_sum);
    late.lags = step + 1 < 150;
    late.Step();
    for (const StepResults& of : late.exchange->results()) {
      got.push_back(late.LossOf(of));
    }
    EXPECT_LT(want.size() - got.size(), StepGraph::kSteps);
  }
  EXPECT_EQ(got, want);
}

// The weights overflow in some step; the host notices it many steps later.
TEST(StepGraphs, WhatIsNotFiniteEndsTheRunInItsStep) {
  const std::string solver = "{name: sgd, lr: 3e3, momentum: 0.9, weight_decay: 0.1}";
  DroppedRig late(solver), direct(solver);
  late.BringBatch();
  uint64_t bad = 0;
  while (direct.Step().finite) ++bad;
  ASSERT_GT(bad, 3U);
  ASSERT_LT(bad, 50U);
  for (uint64_t step = 0; step < StepGraph::kSteps; ++step) {
    late.lags = step + 1 < StepGraph::kSteps;
    EXPECT_EQ(late.Step().finite, late.lags);
  }
  const std::span<const StepResults> results = late.exchange->results();
  ASSERT_EQ(results.size(), StepGraph::kSteps);
  EXPECT_EQ(results[bad - 1].non_finite.step, NonFinitePlace::kNone);
  EXPECT_EQ(results[bad].non_finite.step, bad);
  const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
    return std::ranges::equal(
        a, b, [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); });
  };
  EXPECT_TRUE(same(late.Weights(), direct.Weights()));
  EXPECT_TRUE(same(late.Statistics(), direct.Statistics()));
  const Arena gradients = direct.exchange->gradients();
  EXPECT_EQ(FirstNotFinite(late.graph().weights(), results.back().non_finite),
            FirstNotFinite(direct.graph().weights(), direct.Weights().data(), gradients));
}

// A blob of the weights that somebody keeps moves the update to another one, so other addresses are used.
TEST(StepGraphs, OtherAddressesAreOtherSteps) {
  DroppedRig captured, direct;
  captured.BringBatch();
  std::vector<Blob> kept;
  for (int step = 0; step < 9; ++step) {
    if (step % 3 == 2) {
      captured.exchange->Collect(false);
      kept.push_back(captured.exchange->weights());
    }
    captured.Step();
    direct.Step();
    if (step == 6) kept.clear();
  }
  EXPECT_EQ(captured.Weights(), direct.Weights());
}

TEST(StepGraphs, AStepIsOneLaunchFromTheThirdOn) {
  if (!Counter::Counts()) return;
  DroppedRig rig;
  rig.BringBatch();
  rig.lags = true;
  for (int step = 0; step < 2; ++step) rig.Step();
  Counter counter;
  for (int step = 0; step < 10; ++step) rig.Step();
  EXPECT_EQ(counter.Since().launches, 10U);
  EXPECT_EQ(counter.Since().waits, 0U);
}

// A solver has a value for every layer whose learning rate is not that of the one before.
TEST(StepGraphs, AStepHasRoomForTheValuesOfManyLayers) {
  StepGraph graph(DeviceUnderTest());
  graph.Begin();
  for (int layer = 0; layer < 200; ++layer) graph.Value(std::array<float, 20>{});
  graph.Launch();
  EXPECT_EQ(graph.Wait().size(), 1U);
}

// A copy from the host would be captured with its address of now.
TEST(StepGraphs, WhatCannotBeCapturedIsSubmittedEveryTime) {
  StepGraph graph(DeviceUnderTest());
  const Buffer memory(DeviceUnderTest(), sizeof(double));
  DeviceQueue& queue = *DeviceUnderTest().queue;
  for (double value = 1; value < 6; ++value) {
    graph.Begin();
    graph.Add({memory.data()}, [&] { queue.Upload(memory.data(), &value, sizeof value); });
    graph.Sum(static_cast<const double*>(memory.data()));
    graph.Launch();
    EXPECT_EQ(graph.Wait().back().sums[0], value);
  }
}

class OnePartStep {
 public:
  explicit OnePartStep(StepGraph& graph) : graph_(graph), memory_(DeviceUnderTest(), 64) {}
  // Adds a step that copies `value` to the sum, and returns its result.
  double Step(double value) {
    graph_.Begin();
    const double* const from = graph_.Value(value);
    graph_.Add({from, memory_.data()}, [] {});
    graph_.Sum(from);
    graph_.Launch();
    return graph_.Wait().back().sums[0];
  }

 private:
  StepGraph& graph_;
  Buffer memory_;
};

TEST(StepGraphs, ManyKindsOfStepsAreKept) {
  StepGraph graph(DeviceUnderTest());
  std::vector<std::unique_ptr<OnePartStep>> parts;
  for (size_t i = 0; i < StepGraph::kGraphs + 10; ++i) {
    parts.push_back(std::make_unique<OnePartStep>(graph));
  }
  double value = 0;
  for (int round = 0; round < 4; ++round) {
    for (const auto& part : parts) EXPECT_EQ(part->Step(value), value), ++value;
  }
}

// Returns the results of a step whose gradients are these before they are divided by the scale, and what they are then.
StepResults UnscaleOn(StepGraph& graph, std::array<float, 4> scaled,
                      std::array<float, 4>* unscaled) {
  graph.Begin();
  float* const gradients = graph.Value(scaled)->data();
  graph.Add({gradients}, [&graph, gradients] { graph.UnscaleGradients(gradients, 4); });
  graph.Launch();
  const StepResults results = graph.Wait().back();
  DeviceQueue& queue = *DeviceUnderTest().queue;
  queue.Download(unscaled->data(), gradients, sizeof *unscaled);
  queue.Record().Wait();
  return results;
}

TEST(LossScaling, DividesGradientsAndBacksOffWhereOneIsBeyondTheRange) {
  StepGraph graph(DeviceUnderTest(), true, {.factor = 8, .steps = 5});
  std::array<float, 4> got = {};
  LossScale scale = UnscaleOn(graph, {8, -4, 0, 1}, &got).scale;
  EXPECT_EQ(got, (std::array{1.0f, -0.5f, 0.0f, 0.125f}));
  EXPECT_EQ(scale, (LossScale{8, 6, 0}));
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    const StepResults results = UnscaleOn(graph, {8, 8, bad, bad}, &got);
    EXPECT_EQ(got[0], 8 / scale.factor) << "the scale of the step itself";
    scale = scale.Next(true);
    EXPECT_EQ(results.scale, scale);
    EXPECT_EQ(results.non_finite.step, NonFinitePlace::kNone) << "only a step that is skipped";
  }
  EXPECT_EQ(scale, (LossScale{1, 0, 3}));
  EXPECT_EQ(UnscaleOn(graph, {2, 2, 2, 2}, &got).scale, (LossScale{1, 1, 3}));
  const StepResults last = UnscaleOn(graph, {1, NAN, 1, NAN}, &got);
  EXPECT_EQ(last.non_finite.step, 5U) << "no smaller scale would help";
  EXPECT_EQ(last.non_finite.gradient, 1U);
}

TEST(LossScaling, GrowsAfterManyStepsWithoutOverflow) {
  LossScale scale = LossScale::First();
  for (unsigned long long step = 1; step < LossScale::kGrowsAfter; ++step)
    scale = scale.Next(false);
  EXPECT_EQ(scale.factor, LossScale::kFirst);
  EXPECT_EQ(scale.Next(true), (LossScale{LossScale::kFirst / 2, 0, 1}));
  scale = scale.Next(false);
  EXPECT_EQ(scale, (LossScale{2 * LossScale::kFirst, 0, 0}));
  scale = {LossScale::kMost, LossScale::kGrowsAfter, 7};
  EXPECT_EQ(scale.Next(false).factor, LossScale::kMost);
}

// The first scales are so large that gradients overflow.
TEST(LossScaling, AStepThatOverflowsChangesNoWeightAndLaterOnesTrain) {
  const LossScale most = {.factor = LossScale::kMost};
  NormedRig rig(DeviceUnderTest(Precision::kFp16), kSolver, "0", most);
  NormedRig direct(DeviceUnderTest(Precision::kFp16), kSolver, "0", most);
  rig.BringBatch();
  direct.BringBatch();
  const std::vector<float> start = rig.Weights();
  ASSERT_TRUE(rig.Step().finite);
  EXPECT_EQ(rig.exchange->loss_scale(), most.Next(true));
  EXPECT_EQ(rig.Weights(), start);
  const double first = direct.Step().loss_sum;
  for (int step = 1; step < 40; ++step) {
    rig.lags = step < 39;
    ASSERT_TRUE(rig.Step().finite) << step;
    direct.Step();
  }
  const LossScale scale = rig.exchange->loss_scale();
  EXPECT_GT(scale.skipped, 2U);
  EXPECT_GT(scale.steps, 10U);
  EXPECT_EQ(scale, direct.exchange->loss_scale());
  EXPECT_EQ(rig.Weights(), direct.Weights());
  EXPECT_LT(direct.Step().loss_sum, first / 2);
}

// The scale is a power of two, so it changes only what would be below fp16's range.
TEST(LossScaling, GradientsAreThoseOfAnUnscaledLoss) {
  const std::string plain = "{name: sgd, lr: 0.5}";
  NormedRig scaled(DeviceUnderTest(Precision::kFp16), plain, "0", {.factor = 256});
  NormedRig whole(DeviceUnderTest(), plain);
  scaled.BringBatch();
  whole.BringBatch();
  for (int step = 0; step < 5; ++step) {
    EXPECT_NEAR(scaled.Step().loss_sum, whole.Step().loss_sum, 0.02) << step;
  }
  EXPECT_EQ(scaled.exchange->loss_scale(), (LossScale{256, 5, 0}));
}

}  // namespace
}  // namespace dtrain
