// The module drops the same elements as the CPU for any seed, layer, step and position in the
// global batch.
#include <gtest/gtest.h>

#include <algorithm>

#include "framework/nn/layer_case.h"
#include "tests/nn/layer_harness.h"

namespace dtrain {
namespace {

// Random numbers are drawn four at a time by the element's place in its sample.  So the sizes
// include ones that are not multiples of four.
LayerCase CaseOf(const std::string& ratio, const Shape& shape) {
  return {.name = ratio, .yaml = "{ratio: " + ratio + "}", .inputs = {shape}};
}

KernelVariant OnTheCpu(KernelVariant variant) {
  variant.entry = &KernelRegistry::Of("dropout", DeviceKind::kCpu).front();
  variant.device = {DeviceKind::kCpu, 1, CpuIsa()};
  return variant;
}

// Compares the forward and the backward pass, each of which draws the mask.
void ExpectMasksOfTheCpu(const CaseSetup& setup, const RefArgs& args) {
  const KernelVariant variant = VariantsOf("dropout", setup, Mode::kTrain).at(0);
  const KernelResult got = RunKernel(setup, variant, args);
  const KernelResult want = RunKernel(setup, OnTheCpu(variant), args);
  EXPECT_EQ(got.outputs, want.outputs);
  EXPECT_EQ(got.input_gradients, want.input_gradients);
}

TEST(DropoutMasks, AreThoseOfTheCpu) {
  for (const auto& layer_case : {CaseOf("0.5", {3, 64}), CaseOf("0.1", {5, 3, 5, 7}),
                                 CaseOf("0.999", {2, 4001}), CaseOf("0", {4, 6})}) {
    SCOPED_TRACE(layer_case.yaml);
    const CaseSetup setup("dropout", layer_case);
    RefArgs args = setup.Forward(Mode::kTrain);
    for (const uint64_t seed : {uint64_t{1}, uint64_t{1} << 40}) {
      for (const uint64_t step : {uint64_t{0}, uint64_t{5000}, uint64_t{1} << 33}) {
        for (const int64_t position : {0, 1000003}) {
          args.seed = seed;
          args.step = step;
          args.first_position = position;
          args.layer_index = seed + step;
          ExpectMasksOfTheCpu(setup, args);
        }
      }
    }
  }
}

// The comparison above would not detect a mask that drops nothing or never changes.
TEST(DropoutMasks, DropAboutTheRatioAndChangeWithTheStep) {
  const CaseSetup setup("dropout", CaseOf("0.25", {4, 4096}));
  const KernelVariant variant = VariantsOf("dropout", setup, Mode::kTrain).at(0);
  RefArgs args = setup.Forward(Mode::kTrain);
  const std::vector<float> first = RunKernel(setup, variant, args).outputs[0];
  EXPECT_NEAR(std::count(first.begin(), first.end(), 0.0f), 0.25 * 4 * 4096, 4 * 55);
  ++args.step;
  EXPECT_NE(RunKernel(setup, variant, args).outputs[0], first);
}

}  // namespace
}  // namespace dtrain
