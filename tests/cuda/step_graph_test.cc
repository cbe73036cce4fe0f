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

}  // namespace
}  // namespace dtrain
