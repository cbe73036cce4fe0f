#include "framework/cluster/pacing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/cluster/compute_model.h"
#include "framework/cluster/noise.h"
#include "framework/core/error.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;

constexpr Nanos kMs = 1'000'000;

// Time passes only when a test computes or sleeps.
class FakeClock : public PacingClock {
 public:
  Nanos Now() const override {
    ++reads;
    return now;
  }
  void SleepUntil(Nanos time) override {
    EXPECT_GT(time, now) << "a sleep that is none";
    slept += time - now;
    now = time;
  }

  Nanos now = 1'000 * kMs;
  Nanos slept = 0;
  mutable int reads = 0;
};

// Records when a gradient is announced; passing it on takes `cost`.
class Announcements : public GradientSink {
 public:
  Announcements(FakeClock& clock, Nanos cost) : clock_(clock), start_(clock.now), cost_(cost) {}
  void Ready(Range range, const ReadyEvent&) override {
    ms.push_back(static_cast<double>(clock_.now - start_) / kMs);
    ranges.push_back(range);
    clock_.now += cost_;
  }

  std::vector<double> ms;
  std::vector<Range> ranges;

 private:
  FakeClock& clock_;
  Nanos start_;
  Nanos cost_;
};

// 10 units of work: 4 forward; the gradients are ready after 5, 7 and 10.  The middle layer has no parameters.
const std::vector<LayerWork> kLayers = {
    {{60, 100}, 1, 3}, {{10, 60}, 1, 1}, {{}, 1, 1}, {{0, 10}, 1, 1}};
const std::vector<Range> kReady = {{0, 10}, {10, 60}, {60, 100}};
const std::vector<double> kDone = {0.5, 0.7, 1.0};

struct Paced {
  std::vector<double> announced_ms;
  double end_ms = 0;
};

// Runs a step whose own compute takes `compute`, spread over the layers in proportion to their work.
Paced RunStep(Pacer& pacer, FakeClock& clock, Nanos compute, int64_t step = 0, Nanos cost = 0) {
  const Nanos start = clock.now;
  Announcements inner(clock, cost);
  pacer.BeginStep(step);
  GradientSink* sink = pacer.Wrap(&inner);
  double done = 0;
  for (size_t i = 0; i < kReady.size(); ++i) {
    clock.now += static_cast<Nanos>((kDone[i] - done) * static_cast<double>(compute) + 0.5);
    done = kDone[i];
    sink->Ready(kReady[i], ReadyEvent());
  }
  pacer.FinishStep();
  EXPECT_EQ(inner.ranges, kReady);
  return {inner.ms, static_cast<double>(clock.now - start) / kMs};
}

TEST(WorkFractions, CountAllThatRanUntilAGradientIsThere) {
  const WorkFractions fractions(kLayers);
  EXPECT_DOUBLE_EQ(fractions.At({0, 10}), 0.5);
  EXPECT_DOUBLE_EQ(fractions.At({10, 60}), 0.7);
  EXPECT_DOUBLE_EQ(fractions.At({60, 100}), 1);
}

TEST(WorkFractions, ARangeIsThereWhenItsLastLayerIs) {
  const WorkFractions fractions(kLayers);
  EXPECT_DOUBLE_EQ(fractions.At({3, 4}), 0.5);
  EXPECT_DOUBLE_EQ(fractions.At({0, 11}), 0.7);
  EXPECT_DOUBLE_EQ(fractions.At({0, 100}), 1);
  EXPECT_DOUBLE_EQ(fractions.At({100, 103}), 1) << "behind the last parameter";
}

TEST(WorkFractions, WithoutCostsAllLayersCostTheSame) {
  const WorkFractions fractions({{{10, 20}, 0, 0}, {{0, 10}, 0, 0}});
  EXPECT_DOUBLE_EQ(fractions.At({0, 10}), 4.0 / 6);
  EXPECT_DOUBLE_EQ(fractions.At({10, 20}), 1);
}

TEST(PacedOffset, TakesTheLargerOfMeasuredAndLeastTimesTheFactor) {
  EXPECT_EQ(PacedOffset(0.5, 10 * kMs, 50 * kMs, 1), 25 * kMs);
  EXPECT_EQ(PacedOffset(0.5, 30 * kMs, 50 * kMs, 1), 30 * kMs);
  EXPECT_EQ(PacedOffset(0.5, 10 * kMs, 50 * kMs, 4), 100 * kMs);
  EXPECT_EQ(PacedOffset(0.5, 10 * kMs, 0, 4), 40 * kMs);
  EXPECT_EQ(PacedOffset(1, 10 * kMs, 50 * kMs, 0.5), 25 * kMs);
}

TEST(Pacer, AFastStepIsStretchedToStepSeconds) {
  FakeClock clock;
  Pacer pacer(kLayers, {.step_seconds = 0.05}, clock);
  const Paced paced = RunStep(pacer, clock, 10 * kMs);
  EXPECT_THAT(paced.announced_ms, ElementsAre(25, 35, 50));
  EXPECT_EQ(paced.end_ms, 50);
}

// A kernel that the device has not run yet.
class Pending : public ReadyEvent::Mark {
 public:
  Pending(FakeClock& clock, Nanos takes) : clock_(clock), takes_(takes) {}
  bool Done() const override { return false; }
  void Wait() const override { clock_.now += takes_; }

 private:
  FakeClock& clock_;
  Nanos takes_;
};

TEST(Pacer, WhatTheDeviceHasYetToDoIsCompute) {
  FakeClock clock;
  Pacer pacer(kLayers, {.factor = [](int64_t) { return 2.0; }}, clock);
  Announcements inner(clock, 0);
  pacer.BeginStep(0);
  pacer.Wrap(&inner)->Ready(kReady[0], ReadyEvent(std::make_shared<Pending>(clock, 10 * kMs)));
  pacer.FinishStep();
  EXPECT_THAT(inner.ms, ElementsAre(20));
}

TEST(Pacer, ASlowStepIsNotDelayed) {
  FakeClock clock;
  Pacer pacer(kLayers, {.step_seconds = 0.05}, clock);
  const Paced paced = RunStep(pacer, clock, 80 * kMs);
  EXPECT_THAT(paced.announced_ms, ElementsAre(40, 56, 80));
  EXPECT_EQ(clock.slept, 0);
}

// The delays are not compute: the second step must not be four times the first.
TEST(Pacer, ASlowWorkerTakesItsFactorOfWhatItMeasured) {
  FakeClock clock;
  Pacer pacer(kLayers, {.factor = [](int64_t) { return 4.0; }}, clock);
  const Paced paced = RunStep(pacer, clock, 10 * kMs);
  EXPECT_THAT(paced.announced_ms, ElementsAre(20, 28, 40));
  EXPECT_EQ(paced.end_ms, 40);
}

TEST(Pacer, TheFactorAppliesToStepSecondsToo) {
  FakeClock clock;
  Pacer pacer(kLayers, {.step_seconds = 0.05, .factor = [](int64_t) { return 4.0; }}, clock);
  EXPECT_EQ(RunStep(pacer, clock, 10 * kMs).end_ms, 200);
}

TEST(Pacer, AFactorIsOfItsStep) {
  FakeClock clock;
  const auto factor = [](int64_t step) { return step == 1 ? 0.5 : static_cast<double>(step); };
  Pacer pacer(kLayers, {.step_seconds = 0.05, .factor = factor}, clock);
  EXPECT_EQ(RunStep(pacer, clock, 10 * kMs, 1).end_ms, 25) << "a quick step";
  EXPECT_EQ(RunStep(pacer, clock, 10 * kMs, 2).end_ms, 100);
  EXPECT_EQ(RunStep(pacer, clock, 10 * kMs, 3).end_ms, 150);
}

// Passing on each of three gradients takes 5 ms (with one worker, the update itself): this time shortens the delays and
// is not multiplied by the factor.
TEST(Pacer, HandingGradientsOnIsNoCompute) {
  FakeClock clock;
  Pacer pacer(kLayers, {.factor = [](int64_t) { return 4.0; }}, clock);
  const Paced paced = RunStep(pacer, clock, 10 * kMs, 0, 5 * kMs);
  EXPECT_THAT(paced.announced_ms, ElementsAre(20, 28, 40));
  EXPECT_EQ(paced.end_ms, 45);
}

TEST(Pacer, TheEndIsHeldBackWhereNoGradientIs) {
  FakeClock clock;
  Pacer pacer(kLayers, {.step_seconds = 0.05}, clock);
  pacer.BeginStep(0);
  pacer.FinishStep();
  EXPECT_EQ(clock.slept, 50 * kMs);
}

TEST(Pacer, CostsNothingWhereNothingIsAsked) {
  FakeClock clock;
  const auto never_slower = [](int64_t step) { return step == 0 ? 1.0 : 0.9; };
  for (const PacingOptions& options : {PacingOptions{}, PacingOptions{.factor = never_slower}}) {
    Pacer pacer(kLayers, options, clock);
    Announcements inner(clock, 0);
    for (int64_t step = 0; step < 2; ++step) {
      pacer.BeginStep(step);
      EXPECT_EQ(pacer.Wrap(&inner), &inner);
      pacer.FinishStep();
    }
  }
  EXPECT_EQ(clock.reads, 0);
}

TEST(Pacer, NeedsNoSink) {
  FakeClock clock;
  Pacer pacer(kLayers, {.step_seconds = 0.05}, clock);
  pacer.BeginStep(0);
  pacer.Wrap(nullptr)->Ready({0, 10}, ReadyEvent());
  EXPECT_EQ(clock.slept, 25 * kMs);
}

// The real clock sleeps until a time, and not at all if that time has passed.
TEST(PacingClock, SleepsUntil) {
  PacingClock clock;
  const Nanos due = clock.Now() + kMs;
  clock.SleepUntil(due);
  EXPECT_GE(clock.Now(), due);
  clock.SleepUntil(due - 1'000'000 * kMs);
}

TEST(PacingOf, GivesEachWorkerItsSlowdownAndJitter) {
  ClusterConfig cluster;
  cluster.step_seconds = 0.05;
  cluster.slowdown = {1, 4};
  EXPECT_EQ(PacingOf(cluster, 4, 1, 7).step_seconds, 0.05);
  EXPECT_FALSE(PacingOf(cluster, 4, 1, 7).factor) << "nothing to multiply with";
  EXPECT_EQ(PacingOf(cluster, 4, 2, 7).factor(3), 4);
  cluster.jitter = 0.3;
  EXPECT_EQ(PacingOf(cluster, 4, 1, 7).factor(3), JitterFactor(0.3, 7, 1, 3));
  EXPECT_EQ(PacingOf(cluster, 4, 2, 7).factor(5), 4 * JitterFactor(0.3, 7, 2, 5));
}

TEST(PacingOf, WorkersThatAreNoBlocksAreRefused) {
  ClusterConfig cluster;
  cluster.slowdown = {1, 2, 3};
  EXPECT_THROW(PacingOf(cluster, 4, 0, 7), ConfigError);
}

// A simulated run and a paced one announce the same gradients at the same times.
TEST(Pacer, AgreesWithTheSimulatorsComputeModel) {
  ClusterConfig cluster;
  cluster.step_seconds = 0.05;
  cluster.slowdown = {1, 4};
  cluster.jitter = 0.3;
  ModelProfile profile;
  profile.batch = 1;
  for (const LayerWork& layer : kLayers) {
    profile.layers.push_back({.params = layer.params.size(),
                              .forward_seconds = layer.forward * 1e-6,
                              .backward_seconds = layer.backward * 1e-6});
  }
  const ComputeModel model(cluster, profile, 2, 7);
  FakeClock clock;
  Pacer pacer(kLayers, PacingOf(cluster, 2, 1, 7), clock);
  for (int64_t step = 0; step < 5; ++step) {
    const StepTiming timing = model.Step(1, step, 1);
    const Paced paced = RunStep(pacer, clock, kMs, step);
    for (size_t i = 0; i < kReady.size(); ++i) {
      EXPECT_NEAR(paced.announced_ms[i] * kMs, static_cast<double>(timing.ready[i]), 2);
    }
    EXPECT_NEAR(paced.end_ms * kMs, static_cast<double>(timing.end), 2);
  }
}

Graph LeNet() {
  return Graph::FromFile(std::string(DTRAIN_SOURCE_DIR) + "/configs/models/lenet5.yaml",
                         {{"data", DType::kF32, {1, 28, 28}}, {"label", DType::kI32, {}}});
}

TEST(WorkOf, AGraphCountsFlops) {
  const Graph graph = LeNet();
  const auto work = WorkOf(graph);
  ASSERT_EQ(work.size(), graph.layers().size());
  EXPECT_EQ(work[0].params, graph.layers()[0].param_range);
  EXPECT_EQ(work[0].forward, graph.layers()[0].cost.forward_flops);
  EXPECT_EQ(work[0].backward, graph.layers()[0].cost.backward_flops);
  const WorkFractions fractions(work);
  double previous = 1.0 / 3;  // the forward pass takes about a third
  for (auto layer = graph.layers().rbegin(); layer != graph.layers().rend(); ++layer) {
    if (layer->params.empty()) continue;
    EXPECT_GT(fractions.At(layer->param_range), previous) << layer->name;
    previous = fractions.At(layer->param_range);
  }
  EXPECT_DOUBLE_EQ(previous, 1);
}

TEST(WorkOf, AProfileCountsSeconds) {
  const Graph graph = LeNet();
  ModelProfile profile;
  profile.layers = {{.name = "conv1", .forward_seconds = 2, .backward_seconds = 5},
                    {.name = "fc3", .forward_seconds = 1, .backward_seconds = 2}};
  const WorkFractions fractions(WorkOf(graph, profile));
  EXPECT_DOUBLE_EQ(fractions.At({0, 1}), 0.5);
  EXPECT_DOUBLE_EQ(fractions.At({0, graph.weights().size()}), 1);
}

TEST(WorkOf, AProfileOfAnotherModelIsNamed) {
  ModelProfile profile;
  profile.model = "resnet18";
  profile.layers = {{.name = "stage1"}};
  try {
    WorkOf(LeNet(), profile);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "the profile is of model 'resnet18': its layer 'stage1' is not in 'lenet5'");
    EXPECT_EQ(error.hint(), "measure one with dtrain time --profile FILE");
  }
}

}  // namespace
}  // namespace dtrain
