// Tests the winograd convolution beyond the suite: when the rule chooses it, and that dividing the
// work changes no bit.
#include <gtest/gtest.h>

#include "tests/nn/layer_harness.h"

namespace dtrain {
namespace {

LayerCase CaseOf(const std::string& keys, const Shape& x) {
  return {.name = "winograd", .yaml = keys, .inputs = {x}};
}

// Returns the implementation that the rule chooses on a CPU with one thread.
std::string ChosenFor(const std::string& keys, const Shape& x) {
  const CaseSetup setup("convolution", CaseOf(keys, x));
  KernelRequest request;
  request.layer = &setup.layer();
  request.inputs = setup.input_shapes();
  request.outputs = setup.output_shapes();
  request.available = {Format::kChannelsLast};
  request.needs_input_gradient = {true};
  std::string chosen;
  int preference = 0;
  for (const KernelEntry& entry : KernelRegistry::Of("convolution", DeviceKind::kCpu)) {
    const auto offer = entry.offer(request);
    if (!offer || (!chosen.empty() && offer->preference <= preference)) continue;
    chosen = entry.implementation;
    preference = offer->preference;
  }
  return chosen;
}

TEST(Winograd, IsTakenWhereItPaysWhateverTheBatch) {
  for (const int64_t batch : {1, 128}) {
    EXPECT_EQ(ChosenFor("{outputs: 64, kernel: 3, pad: 1}", {batch, 64, 32, 32}), "winograd");
    EXPECT_EQ(ChosenFor("{outputs: 512, kernel: 3, pad: 1}", {batch, 512, 2, 2}), "winograd");
    EXPECT_EQ(ChosenFor("{outputs: 512, kernel: 3, stride: 2, pad: 1}", {batch, 256, 8, 8}),
              "winograd");
  }
}

TEST(Winograd, LeavesWhatADirectSumDoesWithLess) {
  EXPECT_EQ(ChosenFor("{outputs: 64, kernel: 3, pad: 1}", {32, 3, 32, 32}), "onednn");
  EXPECT_EQ(ChosenFor("{outputs: 16, kernel: 3, pad: 1}", {32, 16, 32, 32}), "onednn");
  EXPECT_EQ(ChosenFor("{outputs: 128, kernel: 1, stride: 2}", {32, 64, 32, 32}), "onednn");
  EXPECT_EQ(ChosenFor("{outputs: 128, kernel: 3, stride: 2, pad: 1}", {32, 64, 32, 32}), "onednn");
  EXPECT_EQ(ChosenFor("{outputs: 512, kernel: 3, pad: 1}", {32, 512, 1, 1}), "onednn");
}

void ExpectSameBitsForAnyThreads(const std::string& keys, const Shape& x) {
  const CaseSetup setup("convolution", CaseOf(keys, x));
  const RefArgs args = setup.Draw(Mode::kTrain);
  int compared = 0;
  for (KernelVariant variant : VariantsOf("convolution", setup, Mode::kTrain)) {
    if (variant.entry->implementation != "winograd" || variant.device.threads > 1) continue;
    SCOPED_TRACE(variant.ToString());
    const KernelResult one = RunKernel(setup, variant, args);
    for (const int threads : {2, 3, 5}) {
      variant.device.threads = threads;
      const KernelResult several = RunKernel(setup, variant, args);
      EXPECT_EQ(one.outputs, several.outputs) << threads << " threads";
      EXPECT_EQ(one.input_gradients, several.input_gradients) << threads << " threads";
      EXPECT_EQ(one.param_gradients, several.param_gradients) << threads << " threads";
    }
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

TEST(Winograd, ThreadsChangeNoBit) {
  ExpectSameBitsForAnyThreads("{outputs: 16, kernel: 3, pad: 1}", {5, 32, 26, 23});
  ExpectSameBitsForAnyThreads("{outputs: 96, kernel: 3, pad: 1}", {7, 80, 4, 4});
  ExpectSameBitsForAnyThreads("{outputs: 48, kernel: 3, stride: 2, pad: 1}", {5, 32, 31, 32});
}

}  // namespace
}  // namespace dtrain
