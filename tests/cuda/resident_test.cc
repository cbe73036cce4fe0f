// Compares steps of one worker whose weights, gradients and solver state are in the GPU's memory
// with the CPU's steps.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/cuda/standin_counts.h"
#include "tests/cuda/step_rig.h"

namespace dtrain {
namespace {

using Rig = NormedRig;

const Device kCpu = {DeviceKind::kCpu, 1, CpuIsa()};

double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return std::sqrt(sum);
}

TEST(GpuSteps, EverySolverTrainsAsOnTheCpuAndRepeatsToTheBit) {
  for (std::string section :
       {"{name: sgd, momentum: 0}", "{name: sgd, nesterov: true, weight_decay: 0.01}",
        "{name: adam, weight_decay: 0.01}", "{name: adamw}", "{name: rmsprop, momentum: 0.5}"}) {
    section.insert(section.size() - 1, ", clip_norm: 0.5, lr: 0.0001");
    Rig gpu(DeviceUnderTest(), section), again(DeviceUnderTest(), section), cpu(kCpu, section);
    const std::vector<float> before = cpu.Weights();
    for (int step = 0; step < 5; ++step) {
      const StepOutcome got = gpu.Step(), want = cpu.Step();
      EXPECT_NEAR(got.loss_sum, want.loss_sum, 1e-4 * want.loss_sum) << section;
      EXPECT_EQ(got.samples, want.samples);
      again.Step();
    }
    const std::vector<float> weights = cpu.Weights();
    EXPECT_LE(Distance(gpu.Weights(), weights), 1e-3 * Distance(before, weights)) << section;
    EXPECT_EQ(gpu.Weights(), again.Weights()) << section;
    EXPECT_LE(Distance(gpu.Statistics(), cpu.Statistics()), 1e-4) << section;
  }
}

// A step copies neither weights nor gradients, nor the statistics of batch normalisation, nor its results.
TEST(GpuSteps, AStepCopiesTheBatchUpAndNothingDown) {
  if (!Counter::Counts()) return;
  for (const bool clips : {false, true}) {
    Rig rig(DeviceUnderTest(), clips ? "{name: adam, clip_norm: 0.1}" : "{name: adam}");
    Counter counter;
    for (const uint64_t parts : {1, 2, 4}) {
      rig.Step(static_cast<int64_t>(parts));  // compiles a program, and copies its tables
      counter.Forget();
      rig.Step(static_cast<int64_t>(parts));
      EXPECT_EQ(counter.Since().up, rig.BatchBytes());
      EXPECT_EQ(counter.Since().down, 0U);
    }
  }
}

// Only the values inspected by the selection and the selected ones are copied from the GPU.
TEST(GpuSteps, OfASelectionLittleIsCopiedDown) {
  if (!Counter::Counts()) return;
  for (const std::string scope : {"layer", "model"}) {
    Rig rig(DeviceUnderTest(),
            "{name: sgd}\ncompress: {name: topk, density: 0.01, scope: " + scope + "}");
    rig.Step();
    Counter counter;
    counter.Forget();
    EXPECT_TRUE(rig.Step().finite);
    const uint64_t gradient = static_cast<uint64_t>(rig.graph().weights().size()) * sizeof(float);
    EXPECT_LT(counter.Since().down, gradient / 5) << scope;
  }
}

// Weights, gradients and losses that are copied in each step are in pinned memory; the batch of
// this test is not.
TEST(GpuSteps, WhatTheExchangeHoldsIsCopiedFromPinnedMemory) {
  if (!Counter::Counts()) return;
  Rig rig(DeviceUnderTest(), "{name: sgd}\ncompress: fp16");
  rig.Step();
  Counter counter;
  counter.Forget();
  rig.Step();
  const uint64_t weights = static_cast<uint64_t>(rig.graph().weights().size()) * sizeof(float);
  EXPECT_EQ(counter.Since().up, weights + rig.BatchBytes());
  EXPECT_EQ(counter.Since().down, weights);
  EXPECT_EQ(counter.Since().pageable, rig.BatchBytes());
}

TEST(GpuSteps, AnEvaluationBetweenStepsCopiesNoWeightsAndChangesNothing) {
  Rig rig(DeviceUnderTest(), "{name: sgd}"), other(DeviceUnderTest(), "{name: sgd}");
  rig.Step();
  other.Step();
  rig.exchange->Collect(false);
  {
    const Blob weights = rig.exchange->weights();
    const std::vector<float> statistics = rig.Statistics();
    rig.net.Evaluate(weights.arena(), rig.state.arena(), rig.Input());  // copies a program's tables
    Counter counter;
    if (Counter::Counts()) counter.Forget();
    const BroughtModel model = rig.net.Bring(weights.arena(), statistics.data());
    const double loss = rig.net.Evaluate(model.weights, model.state, rig.Input()).loss_sum;
    EXPECT_EQ(rig.net.Evaluate(model.weights, model.state, rig.Input()).loss_sum, loss);
    if (Counter::Counts()) {
      EXPECT_EQ(counter.Since().up, statistics.size() * sizeof(float) + 2 * rig.BatchBytes());
    }
    Net net(rig.graph(), kCpu);
    EXPECT_NEAR(net.Evaluate(rig.exchange->HostWeights(), statistics.data(), rig.Input()).loss_sum,
                loss, 1e-5 * loss);
  }
  rig.Step();
  other.Step();
  EXPECT_EQ(rig.Weights(), other.Weights());
}

TEST(GpuSteps, ANaNIsSeenInItsStep) {
  Rig rig(DeviceUnderTest(), "{name: sgd}");
  EXPECT_TRUE(rig.Step().finite);
  rig.batch().fields[0].f32()[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(rig.Step().finite);
}

TEST(GpuSteps, AnUpdateThatOverflowsIsSeenInItsStep) {
  Rig rig(DeviceUnderTest(), "{name: sgd, lr: 1e38, weight_decay: 1e10}");
  const StepOutcome outcome = rig.Step();
  EXPECT_TRUE(std::isfinite(outcome.loss_sum));
  EXPECT_FALSE(outcome.finite);
}

}  // namespace
}  // namespace dtrain
