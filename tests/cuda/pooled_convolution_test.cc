// Compares convolutions that compute the max pooling behind them with the same layers one after the other, on the module.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "framework/core/random.h"
#include "framework/nn/net.h"
#include "tests/nn/layer_harness.h"
#include "tests/support/entry_error.h"

namespace dtrain {
namespace {

struct PooledCase {
  std::string name, convolution, pooling;
  bool relu = true;
  std::string next = "{name: next, type: flatten}";
};

std::ostream& operator<<(std::ostream& out, const PooledCase& c) { return out << c.name; }

constexpr char kNextOfImages[] = "{name: next, type: convolution, outputs: 3, kernel: 1}";

const PooledCase kPooledCases[] = {
    {"lenet", "outputs: 6, kernel: 5, pad: 2", "kernel: 2, stride: 2"},
    {"caffe", "outputs: 6, kernel: 5", "kernel: 2, stride: 2", false, kNextOfImages},
    {"pixels_in_no_window", "outputs: 5, kernel: 3, bias: false", "kernel: 2, stride: 3", true,
     kNextOfImages},
    {"padded", "outputs: 8, kernel: 3, pad: 1", "kernel: 3, stride: 3, pad: 1"},
    {"sides", "outputs: 4, kernel: [1, 3], stride: [1, 2]", "kernel: [3, 2], stride: [4, 2]", true,
     kNextOfImages},
    {"groups", "outputs: 6, kernel: 3, groups: 2, dilation: 2", "kernel: 2, stride: 2"},
    {"sixteen_pixels", "outputs: 5, kernel: [3, 2]", "kernel: 4, stride: 4", true, kNextOfImages},
    {"a_pixel_is_left", "outputs: 6, kernel: 8", "global: true", true, kNextOfImages},
};

class PooledConvolution : public testing::TestWithParam<std::tuple<PooledCase, Precision>> {
 protected:
  static constexpr int64_t kSamples = 5, kRows = 11, kColumns = 10;

  PooledConvolution()
      : graph_(Graph::FromText(
            ModelText(), "m.yaml",
            {{"data", DType::kF32, {2, kRows, kColumns}}, {"label", DType::kI32, {}}})),
        weights_(static_cast<size_t>(graph_.weights().size())),
        images_(kSamples * 2 * kRows * kColumns),
        labels_(kSamples) {
    graph_.InitializeWeights(7, weights_.data());
    const Random random(13, Purpose::kSelfTest);
    // Whole numbers, so that some pixels of a window are equal.
    for (size_t i = 0; i < images_.size(); ++i) images_[i] = std::round(random.Normal(i));
    for (size_t i = 0; i < labels_.size(); ++i) labels_[i] = static_cast<int32_t>(i % 4);
    fields_ = {{images_.data(), {kSamples, 2, kRows, kColumns}},
               {labels_.data(), {kSamples}, DType::kI32}};
    input_.fields = fields_;
    input_.samples = input_.global_samples = kSamples;
  }

  static std::string ModelText() {
    const PooledCase& c = std::get<PooledCase>(GetParam());
    std::string text = "name: pooled\nlayers:\n";
    text += "  - {name: first, type: convolution, outputs: 4, kernel: 1}\n";
    text += "  - {name: conv, type: convolution, " + c.convolution + "}\n";
    if (c.relu) text += "  - {name: relu, type: relu}\n";
    text += "  - {name: pool, type: pooling, method: max, " + c.pooling + "}\n";
    text += "  - " + c.next + "\n";
    text += "  - {name: flat, type: flatten}\n  - {name: fc, type: inner_product, outputs: 4}\n";
    text += "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n";
    return text;
  }

  struct Passes {
    std::map<std::string, std::string> kernels;
    double loss = 0, loss_of_evaluation = 0;
    std::vector<float> gradients;
  };
  // `kernels`: of a plan.  The gradients are those of two equal parts, added.
  Passes Run(const std::map<std::string, std::string>& kernels) {
    Net net(graph_, DeviceUnderTest(std::get<Precision>(GetParam())), kernels);
    Passes result;
    result.gradients.assign(weights_.size(), NAN);
    for (const PartOfStep part : {PartOfStep{true, false}, PartOfStep{false, true}}) {
      result.loss =
          net.Step(weights_.data(), result.gradients.data(), nullptr, input_, nullptr, part)
              .loss_sum;
    }
    result.kernels = net.ChosenKernels(kSamples);
    result.loss_of_evaluation = net.Evaluate(weights_.data(), nullptr, input_).loss_sum;
    return result;
  }

  Graph graph_;
  std::vector<float> weights_, images_;
  std::vector<int32_t> labels_;
  std::vector<Tensor> fields_;
  NetInput input_;
};

TEST_P(PooledConvolution, HasTheValuesOfTwoLayers) {
  const Passes two = Run({{"pool", "direct"}}), one = Run({});
  EXPECT_EQ(two.kernels.at("pool"), "direct");
  EXPECT_THAT(one.kernels, testing::Not(testing::Contains(testing::Key("pool"))));
  EXPECT_EQ(one.loss, two.loss);
  EXPECT_EQ(one.loss_of_evaluation, two.loss_of_evaluation);
  EXPECT_NEAR(one.loss_of_evaluation, one.loss, 1e-6 * one.loss);
  // Sums are those of fewer terms, in another order.  In 16 bits one that is rounded may become its neighbour.
  const Precision precision = std::get<Precision>(GetParam());
  const bool rounds = precision == Precision::kBf16 || precision == Precision::kFp16;
  for (const ArenaEntry& entry : graph_.weights().entries) {
    const EntryError of(entry, one.gradients, two.gradients);
    EXPECT_GT(of.norm, 0) << entry.name;
    EXPECT_LE(of.error, (rounds ? 1e-3 : 1e-6) * of.norm) << entry.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, PooledConvolution,
                         testing::Combine(testing::ValuesIn(kPooledCases),
                                          testing::Values(Precision::kFp32, Precision::kTf32,
                                                          Precision::kBf16, Precision::kFp16)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "_" +
                                  std::string(NameOf(std::get<1>(info.param)));
                         });

// A model whose first layer is a convolution with max pooling.
Graph Pooled(const std::string& convolution, const std::string& pooling,
             const std::string& more = "") {
  return Graph::FromText(
      "name: m\nlayers:\n  - {name: conv, type: convolution, " + convolution +
          "}\n  - {name: pool, type: pooling, " + pooling + "}\n" + more +
          "  - {name: flat, type: flatten}\n  - {name: fc, type: inner_product, outputs: 4}\n"
          "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n",
      "m.yaml", {{"data", DType::kF32, {1, 11, 10}}, {"label", DType::kI32, {}}});
}

std::map<std::string, std::string> KernelsOf(const Graph& graph,
                                             const std::map<std::string, std::string>& plan = {}) {
  Net net(graph, DeviceUnderTest(), plan);
  net.Prepare(Mode::kTrain, 2);
  return net.ChosenKernels(2);
}

constexpr char kFew[] = "outputs: 6, kernel: 3", kHalves[] = "kernel: 2, stride: 2";

TEST(PooledConvolutions, AFrozenOneAndOneWhoseResultIsReadTwicePoolAsWell) {
  Graph frozen = Pooled(kFew, kHalves);
  frozen.Freeze("conv");
  EXPECT_FALSE(KernelsOf(frozen).contains("pool"));
  const Graph twice =
      Pooled(kFew, kHalves,
             "  - {name: bent, type: tanh}\n"
             "  - {name: both, type: eltwise, operation: product, input: [pool, bent]}\n");
  EXPECT_FALSE(KernelsOf(twice).contains("pool"));
}

// Windows that overlap would be computed several times; means have no winner; a plan may name another kernel.
TEST(PooledConvolutions, OthersStayTwoLayers) {
  for (const std::string pooling :
       {"kernel: 3, stride: 2", "method: average", "adaptive: [4, 3]", "kernel: 5, stride: 5"}) {
    EXPECT_TRUE(KernelsOf(Pooled(kFew, pooling)).contains("pool")) << pooling;
  }
  EXPECT_TRUE(KernelsOf(Pooled("outputs: 1100, kernel: 3", kHalves)).contains("pool"))
      << "with many products";
  const auto planned = KernelsOf(Pooled(kFew, kHalves), {{"conv", "cudnn"}});
  EXPECT_THAT(planned.at("conv"), testing::StartsWith("cudnn:"));
  EXPECT_EQ(planned.at("pool"), "direct");
}

// No pass rounds a batch that nothing else reads.
TEST(PooledConvolutions, ABatchOfFloatsIsRoundedWhereItIsRead) {
  const Graph graph = Pooled(kFew, kHalves);
  std::vector<float> weights(static_cast<size_t>(graph.weights().size()));
  graph.InitializeWeights(7, weights.data());
  std::vector<float> images(5 * 110), rounded(images.size());
  std::vector<int32_t> labels = {0, 1, 2, 3, 0};
  const Random random(13, Purpose::kSelfTest);
  for (size_t i = 0; i < images.size(); ++i) images[i] = random.Normal(i);
  for (const auto& [precision, type] :
       {std::pair{Precision::kBf16, DType::kBF16}, std::pair{Precision::kFp16, DType::kF16}}) {
    for (size_t i = 0; i < images.size(); ++i) rounded[i] = RoundedTo(type, images[i]);
    Net net(graph, DeviceUnderTest(precision));
    const auto step = [&](std::vector<float>& of, std::vector<float>& gradients) {
      const Tensor fields[] = {{of.data(), {5, 1, 11, 10}}, {labels.data(), {5}, DType::kI32}};
      NetInput input;
      input.fields = fields;
      input.samples = input.global_samples = 5;
      gradients.resize(weights.size());
      return net.Step(weights.data(), gradients.data(), nullptr, input, nullptr).loss_sum;
    };
    std::vector<float> got, want;
    EXPECT_EQ(step(images, got), step(rounded, want)) << NameOf(precision);
    EXPECT_EQ(got, want) << NameOf(precision);
  }
}

}  // namespace
}  // namespace dtrain
