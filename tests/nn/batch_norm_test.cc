// Tests batch normalisation beyond the suite: the effects of its sums in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "framework/core/isa.h"
#include "framework/core/random.h"
#include "layers/batch_norm/batch_norm_loops.h"
#include "tests/nn/layer_harness.h"
#include "tests/support/layer_run.h"

namespace dtrain {
namespace {

void ExpectSameBits(const CaseSetup& setup, KernelVariant variant, const RefArgs& args) {
  const KernelResult one = RunKernel(setup, variant, args);
  for (const int threads : {2, 3, 5}) {
    variant.device.threads = threads;
    const KernelResult several = RunKernel(setup, variant, args);
    EXPECT_EQ(several.outputs, one.outputs) << variant.ToString();
    EXPECT_EQ(several.input_gradients, one.input_gradients) << variant.ToString();
    EXPECT_EQ(several.param_gradients, one.param_gradients) << variant.ToString();
    EXPECT_EQ(several.state, one.state) << variant.ToString();
  }
}

TEST(BatchNorm, ThreadsChangeNoBit) {
  for (const char* keys : {"{}", "{sync: true}"}) {
    for (const Shape& shape : {Shape{6, 37, 9, 7}, Shape{301, 19}}) {
      const CaseSetup setup("batch_norm", {"threads", keys, {shape}, 0, false, 8});
      const RefArgs args = setup.Draw(Mode::kTrain);
      for (const KernelVariant& variant : VariantsOf("batch_norm", setup, Mode::kTrain)) {
        if (variant.device.threads == 1) ExpectSameBits(setup, variant, args);
      }
    }
  }
}

// Non-temporal stores need an aligned address and whole vectors; planes of 7 x 9 pixels have neither.
TEST(BatchNorm, StreamedWhereverItIsWritten) {
  constexpr int64_t kValues = 24 * 20;
  const Random random(3, Purpose::kSelfTest);
  std::vector<float> x(kValues), factors(24);
  for (size_t i = 0; i < x.size(); ++i) x[i] = random.Normal(i);
  for (size_t i = 0; i < factors.size(); ++i) factors[i] = random.Normal(1000 + i);
  const float* const f = factors.data();
  const ChannelFactors all = {f, f, f, f, f};
  for (const Isa isa : {Isa::kBaseline, Isa::kAvx, Isa::kAvx2, Isa::kAvx512}) {
    if (isa > CpuIsa()) break;
    for (const int64_t channels : {1, 16, 24, 5}) {
      for (int64_t offset = 0; offset < 17; ++offset) {
        alignas(64) std::array<float, kValues + 16> plain = {}, streamed = {};
        for (const bool stream : {false, true}) {
          DTRAIN_ISA_SELECT(isa, NormForward)
          (x.data(), kValues / channels, channels, all, stream, stream,
           (stream ? streamed : plain).data() + offset);
        }
        for (size_t i = 0; i < plain.size(); ++i) {
          ASSERT_EQ(streamed[i], std::max(plain[i], 0.0f)) << IsaName(isa) << ", " << channels;
        }
      }
    }
  }
}

// With mean 1000 and deviation 1, sums of squares in float would lose the variance.
TEST(BatchNorm, TheVarianceOfValuesFarFromZero) {
  constexpr int64_t kPixels = 32 * 32, kSamples = 32;
  LayerRun run("batch_norm", "{}", {{kSamples, 2, 32, 32}}, {0});
  const Random random(4, Purpose::kSelfTest);
  double sum[2] = {}, squares[2] = {};
  std::vector<float>& x = run.inputs[0].values;
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = 1000 + random.Normal(i);
    const auto c = static_cast<size_t>(static_cast<int64_t>(i) / kPixels % 2);
    sum[c] += x[i] - 1000.0;
    squares[c] += (x[i] - 1000.0) * (x[i] - 1000.0);
  }
  run.params[0].values = {1, 1};
  LayerArray running[] = {LayerArray({2}), LayerArray({2})};
  const Tensor state[] = {running[0].tensor, running[1].tensor};
  KernelArgs args = run.Args();
  args.state = state;
  run.kernel().Forward(args);
  for (size_t i = 0; i < x.size(); i += 997) {
    const auto c = static_cast<size_t>(static_cast<int64_t>(i) / kPixels % 2);
    const double count = kPixels * kSamples, mean = sum[c] / count;
    const double variance = squares[c] / count - mean * mean;
    // The bound allows for the rounding of the mean to float.
    EXPECT_NEAR(run.outputs[0].values[i], (x[i] - 1000 - mean) / std::sqrt(variance + 1e-5), 4e-5);
  }
}

}  // namespace
}  // namespace dtrain
