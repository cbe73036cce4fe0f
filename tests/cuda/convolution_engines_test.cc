// Tests which of cuDNN's engines a convolution takes, by rule, by a plan and by measuring.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "framework/core/random.h"
#include "framework/nn/net.h"
#include "tests/cuda/module_under_test.h"
#include "tests/nn/layer_harness.h"

namespace dtrain {
namespace {

using Kernels = std::map<std::string, std::string>;

// The stand-in has other engines for fewer than 12 images.
constexpr int64_t kManyImages = 14, kFewImages = 3;
constexpr char kEngines[] = "cudnn:(eng[0-9]+(_k[0-9]+=-?[0-9]+)*(\\+bias)?,?)+";

// The second convolution's input is read twice, so that its gradient is added to what is there.
Graph Branched(const std::string& more = ", pad: 1, bias: false") {
  return Graph::FromText(
      "name: m\nlayers:\n  - {name: first, type: convolution, outputs: 32, kernel: 3, pad: 1}\n"
      "  - {name: second, type: convolution, input: first, outputs: 32, kernel: 3" +
          more +
          "}\n  - {name: sum, type: eltwise, operation: sum, input: [second, first]}\n"
          "  - {name: flat, type: flatten}\n  - {name: fc, type: inner_product, outputs: 4}\n"
          "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n",
      "m.yaml", {{"data", DType::kF32, {8, 9, 9}}, {"label", DType::kI32, {}}});
}

Kernels KernelsOf(Net& net, int64_t samples) {
  net.Prepare(Mode::kTrain, samples);
  return net.ChosenKernels(samples);
}

std::vector<float> GradientsOf(Net& net) {
  const Graph& graph = net.graph();
  std::vector<float> weights(static_cast<size_t>(graph.weights().size())),
      gradients(weights.size());
  graph.InitializeWeights(7, weights.data());
  std::vector<float> images(kManyImages * 8 * 9 * 9);
  const Random random(13, Purpose::kSelfTest);
  for (size_t i = 0; i < images.size(); ++i) images[i] = random.Normal(i);
  std::vector<int32_t> labels(kManyImages, 1);
  const Tensor fields[] = {{images.data(), {kManyImages, 8, 9, 9}},
                           {labels.data(), {kManyImages}, DType::kI32}};
  NetInput input;
  input.fields = fields;
  input.samples = input.global_samples = kManyImages;
  net.Step(weights.data(), gradients.data(), nullptr, input, nullptr);
  return gradients;
}

TEST(ConvolutionEngines, AreNamedAndChosenAlikeTwice) {
  const Graph graph = Branched();
  for (const Precision precision :
       {Precision::kFp32, Precision::kTf32, Precision::kBf16, Precision::kFp16}) {
    Net net(graph, DeviceUnderTest(precision)), again(graph, DeviceUnderTest(precision));
    const Kernels kernels = KernelsOf(net, kManyImages);
    EXPECT_THAT(kernels.at("second"), testing::MatchesRegex(kEngines)) << NameOf(precision);
    EXPECT_EQ(KernelsOf(again, kManyImages), kernels) << NameOf(precision);
    EXPECT_EQ(GradientsOf(again), GradientsOf(net)) << NameOf(precision);
  }
}

// The stand-in lists first an engine that does not repeat its results and one that needs 3 GB, and stops the program
// if one is executed; then one that rounds fp32 to TF32.
TEST(ConvolutionEngines, DoWhatThePrecisionAsksFor) {
  if (ModuleBesideTests()) GTEST_SKIP() << "the stand-in's engines are known, the GPU's are not";
  const Graph graph = Branched();
  Net exact(graph, DeviceUnderTest(Precision::kFp32));
  Net rounded(graph, DeviceUnderTest(Precision::kTf32));
  Net halves(graph, DeviceUnderTest(Precision::kBf16));
  EXPECT_EQ(KernelsOf(exact, kManyImages).at("second"), "cudnn:eng0_k2=1,eng0_k2=1,eng0_k2=1");
  EXPECT_EQ(KernelsOf(rounded, kManyImages).at("second"), "cudnn:eng1_k2=1,eng1_k2=1,eng1_k2=1");
  EXPECT_EQ(KernelsOf(rounded, kFewImages).at("second"), "cudnn:eng4,eng4,eng4");
  EXPECT_EQ(KernelsOf(halves, kManyImages).at("second"), "cudnn:eng1_k2=1,eng1_k2=1,eng1_k2=1");
  EXPECT_NE(GradientsOf(exact), GradientsOf(rounded));
}

TEST(ConvolutionEngines, AreThoseOfAPlan) {
  const Graph graph = Branched();
  Net measured(graph, DeviceUnderTest(), {}, true);
  const Kernels kernels = KernelsOf(measured, kManyImages);
  EXPECT_THAT(kernels.at("second"), testing::MatchesRegex(kEngines));
  Net again(graph, DeviceUnderTest(), {}, true);
  EXPECT_EQ(KernelsOf(again, kManyImages), kernels) << "a problem is measured once";
  Net planned(graph, DeviceUnderTest(), kernels);
  EXPECT_EQ(KernelsOf(planned, kManyImages), kernels);
  EXPECT_EQ(GradientsOf(planned), GradientsOf(measured));
}

// The rule takes none of these; the last one does not compute gradients of weights of few images.
TEST(ConvolutionEngines, OfOneBatchAreThoseOfTheOthersWhereTheyCanBe) {
  if (ModuleBesideTests()) GTEST_SKIP() << "the stand-in's engines are known, the GPU's are not";
  const Graph graph = Branched();
  Net net(graph, DeviceUnderTest(Precision::kTf32), {{"second", "cudnn:eng0_k2=0,eng4,eng1_k2=0"}});
  net.FollowKernelsOf(kManyImages);
  EXPECT_EQ(KernelsOf(net, kManyImages).at("second"), "cudnn:eng0_k2=0,eng4,eng1_k2=0");
  EXPECT_EQ(KernelsOf(net, kFewImages).at("second"), "cudnn:eng0_k2=0,eng4,eng4");
  Net by_rule(graph, DeviceUnderTest(Precision::kTf32));
  EXPECT_NE(GradientsOf(net), GradientsOf(by_rule));
}

TEST(ConvolutionEngines, AddTheBiasUnlessAPlanIsWithout) {
  const Graph graph = Branched(", pad: 1");
  for (const Precision precision :
       {Precision::kFp32, Precision::kTf32, Precision::kBf16, Precision::kFp16}) {
    const bool halves = precision == Precision::kBf16 || precision == Precision::kFp16;
    Net net(graph, DeviceUnderTest(precision));
    Kernels kernels = KernelsOf(net, kManyImages);
    const std::string with = kernels.at("second"), plus = "+bias";
    ASSERT_THAT(with, testing::HasSubstr(plus + ",")) << NameOf(precision);
    std::string without = with;
    kernels["second"] = without.erase(with.find(plus), plus.size());
    Net before(graph, DeviceUnderTest(precision), kernels);
    EXPECT_THAT(KernelsOf(before, kManyImages).at("second"),
                testing::Not(testing::HasSubstr(plus)));
    const std::vector<float> got = GradientsOf(net), want = GradientsOf(before);
    float most = 0;
    for (size_t i = 0; i < got.size(); ++i) most = std::max(most, std::abs(got[i] - want[i]));
    EXPECT_LT(most, halves ? 0.02 : 1e-5) << NameOf(precision);
    // Rounded once, not twice.  What adds the bias behind the engine rounds its sum first.
    if (halves) {
      EXPECT_GT(most, 0) << NameOf(precision);
    }
  }
}

TEST(ConvolutionEngines, OfAPlanThatAreNotHereAreChosenByRule) {
  const Graph graph = Branched();
  Net by_rule(graph, DeviceUnderTest());
  const Kernels kernels = KernelsOf(by_rule, kManyImages);
  for (const std::string name : {"cudnn:eng999_k2=1,eng999,eng-1", "cudnn:fast,,",
                                 "cudnn:eng2,eng3,eng1_k2=1", "cudnn:eng0_k2", "cudnn:", "cudnn"}) {
    Net net(graph, DeviceUnderTest(), {{"second", name}});
    EXPECT_EQ(KernelsOf(net, kManyImages), kernels) << name;
  }
}

// The stand-in's engines do not add where the window is dilated: another kernel does.
TEST(ConvolutionEngines, AGradientThatNoEngineAddsIsAddedBehindIt) {
  for (const std::string more : {", pad: 1, bias: false", ", pad: 2, dilation: 2, bias: false"}) {
    const Graph graph = Branched(more);
    Net gpu(graph, DeviceUnderTest()), cpu(graph, Device{});
    const std::vector<float> got = GradientsOf(gpu), want = GradientsOf(cpu);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], 1e-4 * (1 + std::abs(want[i]))) << i << more;
    }
  }
}

}  // namespace
}  // namespace dtrain
