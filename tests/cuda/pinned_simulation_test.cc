// Tests that a simulation whose gradients are computed on a GPU copies from and to pinned memory alone: other copies block
// the host.
#include <gtest/gtest.h>

#include "tests/cuda/module_under_test.h"
#include "tests/cuda/standin_counts.h"
#include "tests/sim/scenario.h"

namespace dtrain {
namespace {

// Brings the weights to the device, and takes gradients from it.
class CopyingGradients : public SourceAtOnce {
 public:
  BlobMemory Memory() const override {
    BlobMemory memory;
    memory.pinned_for = device_.queue;
    return memory;
  }
  StepReport Compute(int, int64_t, const Blob& weights, float* gradients) override {
    device_.queue->Upload(memory_.data(), weights.f32(), kBytes);
    device_.queue->Download(gradients, memory_.data(), kBytes);
    device_.Record().Wait();
    ++steps;
    return {.samples = 8, .loss_sum = 1};
  }
  static constexpr size_t kBytes = kSize * sizeof(float);
  uint64_t steps = 0;

 private:
  const Device device_ = DeviceUnderTest();
  const Buffer memory_{device_, kBytes};
};

TEST(SimulationOnAGpu, PinsItsVectors) {
  if (!Counter::Counts())
    GTEST_SKIP() << "the stand-in is missing, which counts: DTRAIN_TEST_GPU chose a GPU";
  for (const std::string strategy : {"allreduce", "ps_asp", "ps_ssp", "gssp", "inhad"}) {
    Scenario scenario(strategy, 4);
    scenario.setup.exchange.rule.last_samples = 8 * 4 * 20;
    std::vector<float> start(kSize, 1.0f);
    scenario.setup.exchange.start.weights = start;
    CopyingGradients source;
    scenario.setup.source = &source;
    const Counter counter;
    const SimulationResult result = scenario.Run();
    const DeviceCounts counts = counter.Since();
    EXPECT_LT(result.weights[0], 1) << strategy;
    EXPECT_GE(source.steps, 80U) << strategy;
    EXPECT_EQ(counts.up, source.steps * source.kBytes) << strategy;
    EXPECT_EQ(counts.pageable, 0U) << strategy;
  }
}

}  // namespace
}  // namespace dtrain
