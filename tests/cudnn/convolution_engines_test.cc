// Asks the real cuDNN which engines it has for the convolutions of the shipped models on an H200.  Its heuristics need
// the properties of a GPU, not the GPU.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "framework/nn/graph.h"
#include "layers/convolution/convolution.h"
#include "layers/convolution/convolution_pass_cuda.h"

namespace dtrain {
namespace {

using Kind = ConvolutionPass::Kind;

// As cuDNN describes one; the numbers are those of NVIDIA's data sheet and of CUDA's programming guide for compute
// capability 9.0.
constexpr char kH200[] = R"({
  "deviceName": "NVIDIA H200", "deviceVer": 900, "driverVer": 13000, "cudaDeviceId": 0, "pciDeviceId": 0,
  "multiProcessorCount": 132, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "l2CacheSize": 62914560,
  "totalGlobalMem": 150000000000, "warpSize": 32, "maxGridSize": [2147483647, 65535, 65535],
  "maxBlockSize": [1024, 1024, 64], "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "maxCtasPerSM": 32,
  "regsPerBlock": 65536, "maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 49152,
  "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024, "isTccDriver": 0,
  "supportCoopLaunch": 1})";

struct EngineCase {
  std::string name;
  DType type;
  bool tf32;
  Format format = Format::kChannelsLast;
};
std::ostream& operator<<(std::ostream& out, const EngineCase& c) { return out << c.name; }

// Channels and pixels, outputs, kernel, stride, groups, dilation.
using Layer = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t>;
// Each kind of layer of ResNet-18 and VGG-19 with images of 32 pixels; one channel and an odd size; depthwise, dilated, and
// groups that are dilated.
const std::vector<Layer> kLayers = {
    {3, 32, 64, 3, 1, 1, 1},   {64, 32, 64, 3, 1, 1, 1},  {64, 32, 128, 3, 2, 1, 1},
    {64, 32, 128, 1, 2, 1, 1}, {256, 8, 256, 3, 1, 1, 1}, {256, 8, 512, 1, 2, 1, 1},
    {512, 4, 512, 3, 1, 1, 1}, {512, 2, 512, 3, 1, 1, 1}, {1, 63, 64, 7, 2, 1, 1},
    {64, 16, 64, 3, 1, 64, 1}, {64, 16, 64, 3, 1, 1, 2},  {64, 16, 64, 3, 1, 4, 2}};

ConvolutionProblem ProblemOf(const Layer& layer, int64_t images, const EngineCase& c) {
  const auto [channels, pixels, outputs, kernel, stride, groups, dilation] = layer;
  const int64_t pad = kernel / 2 * dilation;
  const int64_t results = (pixels + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
  return {.x = {images, channels, pixels, pixels},
          .y = {images, outputs, results, results},
          .w = {outputs, channels / groups, kernel, kernel},
          .pad = {pad, pad},
          .stride = {stride, stride},
          .dilation = {dilation, dilation},
          .type = c.type,
          .tf32 = c.tf32,
          .format = c.format};
}

class H200Engines : public testing::TestWithParam<EngineCase> {};

TEST_P(H200Engines, QualifyForEveryPassAndAreFoundByTheirNames) {
  for (const Layer& layer : kLayers) {
    for (const int64_t images : {128, 1}) {
      for (const Kind kind : {Kind::kForward, Kind::kData, Kind::kWeights}) {
        const ConvolutionProblem problem = ProblemOf(layer, images, GetParam());
        const ListedEngine engine = EngineByRule(kH200, problem, kind);
        EXPECT_EQ(engine.name.substr(0, 3), "eng");
        EXPECT_EQ(EngineByRule(kH200, problem, kind).name, engine.name) << "the second time";
        if (std::getenv("DTRAIN_TABLES") == nullptr) continue;
        const char* const passes[] = {"forward", "data", "weights"};
        std::cout << fmt::format(
            "{} to {}, {}, {}: {}, {:.2f} MB of workspace{}\n", problem.x.ToString(),
            problem.y.ToString(), GetParam().name, passes[static_cast<int>(kind)], engine.name,
            static_cast<double>(engine.workspace_bytes) / 1e6, engine.adds ? ", adds" : "");
      }
    }
  }
}

// So that the branches of a residual net need no pass of their own, nor do the parts of a batch.
TEST_P(H200Engines, AddToTheGradientsInResNet) {
  for (const Layer& layer : kLayers) {
    if (std::get<5>(layer) > 1 || std::get<6>(layer) > 1) continue;  // groups, dilation
    const ConvolutionProblem problem = ProblemOf(layer, 128, GetParam());
    for (const Kind kind : {Kind::kData, Kind::kWeights}) {
      if (kind == Kind::kWeights && !problem.weights_in_arena()) continue;
      EXPECT_TRUE(EngineByRule(kH200, problem, kind).adds)
          << problem.x.ToString() << " to " << problem.y.ToString() << ", pass "
          << static_cast<int>(kind);
    }
  }
}

// An engine that turns images reads and writes them once more.
TEST(H200EnginesForPlainImages, TurnNone) {
  const EngineCase fp32{"fp32", DType::kF32, false, Format::kPlain};
  for (const Layer& layer : kLayers) {
    if (std::get<5>(layer) > 1 || std::get<6>(layer) > 1) continue;  // groups, dilation
    for (const Kind kind : {Kind::kForward, Kind::kData}) {
      const ConvolutionProblem problem = ProblemOf(layer, 128, fp32);
      EXPECT_LT(EngineByRule(kH200, problem, kind).workspace_bytes, 10'000U)
          << problem.x.ToString() << " to " << problem.y.ToString();
    }
  }
}

// Returns what follows an engine's number in its name.
std::string KnobsOf(const ListedEngine& engine) {
  const size_t at = engine.name.find('_');
  return at == std::string::npos ? "" : engine.name.substr(at);
}

// The kernels with a bias are those without: the same tiles, which cuDNN counts as another engine.
TEST_P(H200Engines, AddABias) {
  for (const Layer& layer : kLayers) {
    if (std::get<5>(layer) > 1 || std::get<6>(layer) > 1) continue;  // groups, dilation
    ConvolutionProblem problem = ProblemOf(layer, 128, GetParam());
    if (problem.x[1] % 8 != 0) continue;  // no packs of channels: other kernels
    const ListedEngine without = EngineByRule(kH200, problem, Kind::kForward);
    problem.bias = true;
    const ListedEngine with = EngineByRule(kH200, problem, Kind::kForward);
    EXPECT_EQ(KnobsOf(with), KnobsOf(without)) << problem.x.ToString();
    EXPECT_EQ(with.workspace_bytes, without.workspace_bytes) << problem.x.ToString();
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, H200Engines,
                         testing::Values(EngineCase{"fp32", DType::kF32, false, Format::kPlain},
                                         EngineCase{"fp32_last", DType::kF32, false},
                                         EngineCase{"tf32", DType::kF32, true},
                                         EngineCase{"bf16", DType::kBF16, false},
                                         EngineCase{"fp16", DType::kF16, false}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace dtrain
