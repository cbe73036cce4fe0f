// Tests products in bf16 (device/device.h): which kernels use them, that the number of threads
// changes no bit, and that training stays close to fp32's.  Except for the choice of kernels, the
// tests run the emulated kernel (emulated_amx.cc) on any machine, and the AMX kernel where the CPU
// has AMX.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "framework/core/isa.h"
#include "framework/core/random.h"
#include "framework/device/cpu/threads.h"
#include "framework/nn/net.h"
#include "layers/convolution/convolution.h"
#include "tests/nn/layer_harness.h"

namespace dtrain {
namespace {

constexpr char kResidual[] = R"(
name: residual
layers:
  - {name: conv, type: convolution, outputs: 32, kernel: 3, pad: 1, bias: false}
  - {name: bn, type: batch_norm}
  - {name: relu, type: relu}
  - {name: conv1, type: convolution, outputs: 32, kernel: 3, pad: 1, bias: false}
  - {name: bn1, type: batch_norm}
  - {name: relu1, type: relu}
  - {name: conv2, type: convolution, outputs: 32, kernel: 3, pad: 1, bias: false}
  - {name: bn2, type: batch_norm}
  - {name: add, type: eltwise, input: [bn2, relu]}
  - {name: relu2, type: relu}
  - {name: down, type: convolution, outputs: 64, kernel: 3, stride: 2, pad: 1}
  - {name: relu3, type: relu}
  - {name: pool, type: pooling, method: average, global: true}
  - {name: flatten, type: flatten}
  - {name: fc, type: inner_product, outputs: 4}
  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}
)";

constexpr int64_t kSamples = 20;

Device Cpu(int threads, Precision precision) {
  return {DeviceKind::kCpu, threads, CpuIsa(), precision};
}

Graph Residual() {
  return Graph::FromText(kResidual, "m.yaml",
                         {{"data", DType::kF32, {3, 8, 8}}, {"label", DType::kI32, {}}});
}

// The losses of `steps` SGD steps on one batch of noisy class patterns, and the weights after them.
struct Training {
  // `named` is the kernel of the convolutions of whole blocks; "" lets the rule choose.
  Training(const Device& device, int steps, const std::string& named = "") {
    ApplyThreadBudget(device.threads);
    const Graph graph = Residual();
    std::map<std::string, std::string> plan;
    if (!named.empty()) plan = {{"conv1", named}, {"conv2", named}, {"down", named}};
    Net net(graph, device, plan);
    net.Prepare(Mode::kTrain, kSamples);
    kernels = net.ChosenKernels(kSamples);
    weights.resize(static_cast<size_t>(graph.weights().size()));
    std::vector<float> gradients(weights.size()), state(graph.state().size());
    graph.InitializeWeights(5, weights.data());
    graph.InitializeState(state.data());
    MakeBatch();
    for (int step = 0; step < steps; ++step) {
      losses.push_back(
          net.Step(weights.data(), gradients.data(), state.data(), input, nullptr).loss_sum /
          kSamples);
      for (size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.05f * gradients[i];
    }
    ApplyThreadBudget(1);
  }

  void MakeBatch() {
    const Random random(11, Purpose::kSelfTest), patterns(12, Purpose::kSelfTest);
    const int64_t pixels = Shape{3, 8, 8}.count();
    for (int64_t i = 0; i < kSamples; ++i) {
      labels.push_back(static_cast<int32_t>(i % 4));
      for (int64_t p = 0; p < pixels; ++p) {
        images.push_back(random.Normal(i * pixels + p) +
                         0.5f * patterns.Normal(i % 4 * pixels + p));
      }
    }
    fields = {{images.data(), {kSamples, 3, 8, 8}, DType::kF32, Format::kPlain},
              {labels.data(), {kSamples}, DType::kI32, Format::kPlain}};
    input.fields = fields;
    input.samples = input.global_samples = kSamples;
  }

  std::vector<double> losses;
  std::vector<float> weights;
  std::map<std::string, std::string> kernels;
  std::vector<float> images;
  std::vector<int32_t> labels;
  std::vector<Tensor> fields;
  NetInput input;
};

class Bf16Kernels : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "amx" && !AmxAvailable()) GTEST_SKIP() << "no bf16 here: " << WhyNoAmx();
  }

  // Returns the tested implementation for a case, without a fused ReLU.
  static KernelVariant VariantOf(const CaseSetup& setup) {
    for (const KernelVariant& variant : VariantsOf("convolution", setup, Mode::kTrain)) {
      const bool bf16 = variant.device.precision == Precision::kBf16 && !variant.fused_relu;
      if (bf16 && variant.entry->implementation == GetParam()) return variant;
    }
    throw std::runtime_error("no kernel " + GetParam());
  }
};

INSTANTIATE_TEST_SUITE_P(Implementations, Bf16Kernels, testing::Values("amx", "amx_emulated"),
                         [](const auto& info) { return info.param; });

TEST_P(Bf16Kernels, TrainingFollowsFp32) {
  constexpr int kSteps = 40;
  const Training fp32(Cpu(1, Precision::kFp32), kSteps);
  const Training bf16(Cpu(1, Precision::kBf16), kSteps, GetParam());
  EXPECT_EQ(bf16.kernels.at("conv2"), GetParam());
  EXPECT_LT(fp32.losses.back(), fp32.losses.front() / 4);
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_NEAR(bf16.losses[step], fp32.losses[step], 0.02 * fp32.losses.front()) << step;
  }
  EXPECT_NE(bf16.weights, fp32.weights);
}

TEST(Bf16Offer, ConvolutionsOfWholeBlocksTakeAmxWhereAskedFor) {
  const Training fp32(Cpu(1, Precision::kFp32), 0), bf16(Cpu(1, Precision::kBf16), 0);
  for (const char* layer : {"conv1", "conv2", "down"}) {
    EXPECT_EQ(bf16.kernels.at(layer), AmxAvailable() ? "amx" : fp32.kernels.at(layer));
    EXPECT_NE(fp32.kernels.at(layer), "amx");
  }
  EXPECT_EQ(bf16.kernels.at("conv"), fp32.kernels.at("conv"));  // three channels
}

// The layer suite tests these variants, so none may be missing on any machine.
TEST(Bf16Offer, EveryCaseOfWholeBlocksIsEmulated) {
  int cases = 0;
  for (const LayerCase& layer_case : LayerCaseRegistry::Get("cases", "convolution").cases) {
    const CaseSetup setup("convolution", layer_case);
    const bool blocks = static_cast<const Convolution&>(setup.layer()).IsPlainSquare() &&
                        setup.input_shapes()[0][1] % 32 == 0 &&
                        setup.output_shapes()[0][1] % 32 == 0;
    const auto variants = VariantsOf("convolution", setup, Mode::kTrain);
    const auto emulated = std::count_if(variants.begin(), variants.end(), [](const auto& variant) {
      return variant.entry->implementation == "amx_emulated";
    });
    EXPECT_EQ(emulated, blocks ? 4 : 0) << layer_case.name;  // threads x fused ReLU
    cases += blocks ? 1 : 0;
  }
  EXPECT_GE(cases, 10);
}

// Threads divide rows, bands or channels, depending on the case.
TEST_P(Bf16Kernels, ThreadsChangeNoBit) {
  const LayerCase cases[] = {
      {"rows in turn", "{outputs: 64, kernel: 3, pad: 1}", {{2, 32, 25, 24}}},
      {"whole maps, two groups", "{outputs: 32, kernel: 3, pad: 1}", {{34, 64, 4, 4}}},
      {"stride", "{outputs: 32, kernel: 3, stride: 2, pad: 1}", {{3, 64, 24, 25}}},
      {"rows in turn, two groups", "{outputs: 64, kernel: 3, pad: 1}", {{33, 64, 17, 17}}}};
  for (const LayerCase& layer_case : cases) {
    SCOPED_TRACE(layer_case.name);
    const CaseSetup setup("convolution", layer_case);
    const RefArgs args = setup.Draw(Mode::kTrain);
    KernelVariant amx = VariantOf(setup);
    const KernelResult one = RunKernel(setup, amx, args);
    for (const int threads : {2, 3, 5}) {
      amx.device.threads = threads;
      const KernelResult more = RunKernel(setup, amx, args);
      EXPECT_EQ(more.outputs, one.outputs) << threads;
      EXPECT_EQ(more.input_gradients, one.input_gradients) << threads;
      EXPECT_EQ(more.param_gradients, one.param_gradients) << threads;
    }
  }
}

// The kernel rounds all factors, gradients too, to the nearest even bf16 value.  So rounding them
// beforehand changes nothing.
TEST_P(Bf16Kernels, RoundingBeforehandChangesNoProduct) {
  const LayerCase cases[] = {
      {"rows in turn", "{outputs: 64, kernel: 3, pad: 1, bias: false}", {{2, 32, 25, 24}}},
      {"whole maps", "{outputs: 32, kernel: 3, pad: 1, bias: false}", {{5, 64, 4, 4}}}};
  for (const LayerCase& layer_case : cases) {
    SCOPED_TRACE(layer_case.name);
    const CaseSetup setup("convolution", layer_case);
    const RefArgs args = setup.Draw(Mode::kTrain);
    const KernelVariant amx = VariantOf(setup);
    const KernelResult raw = RunKernel(setup, amx, args);
    const KernelResult rounded = RunKernel(setup, amx, setup.RoundedTo(DType::kBF16, args, true));
    EXPECT_EQ(raw.outputs, rounded.outputs);
    EXPECT_EQ(raw.input_gradients, rounded.input_gradients);
    EXPECT_EQ(raw.param_gradients, rounded.param_gradients);
  }
}

// The emulation adds in the hardware's order (amx_tiles.h).
TEST(Bf16Hardware, HasTheBitsOfTheEmulation) {
  if (!AmxAvailable()) GTEST_SKIP() << "no bf16 here: " << WhyNoAmx();
  int compared = 0;
  for (const LayerCase& layer_case : LayerCaseRegistry::Get("cases", "convolution").cases) {
    const CaseSetup setup("convolution", layer_case);
    const RefArgs args = setup.Draw(Mode::kTrain);
    std::map<std::string, KernelResult> results;
    for (const KernelVariant& variant : VariantsOf("convolution", setup, Mode::kTrain)) {
      if (variant.device.precision != Precision::kBf16 || variant.fused_relu) continue;
      results[variant.entry->implementation] = RunKernel(setup, variant, args);
    }
    if (results.empty()) continue;
    SCOPED_TRACE(layer_case.name);
    const KernelResult& amx = results.at("amx");
    const KernelResult& emulated = results.at("amx_emulated");
    EXPECT_EQ(amx.outputs, emulated.outputs);
    EXPECT_EQ(amx.input_gradients, emulated.input_gradients);
    EXPECT_EQ(amx.param_gradients, emulated.param_gradients);
    ++compared;
  }
  EXPECT_GE(compared, 10);
}

TEST(Bf16Offer, ALowerInstructionSetHasNoAmx) {
  const Training training({DeviceKind::kCpu, 1, std::min(CpuIsa(), Isa::kAvx2), Precision::kBf16},
                          0);
  EXPECT_NE(training.kernels.at("conv1"), "amx");
}

}  // namespace
}  // namespace dtrain
