// Tests nets whose targets are numbers: fp32 fields, as tables and arrays have them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "framework/core/error.h"
#include "framework/core/random.h"
#include "framework/nn/net.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr int64_t kSamples = 24, kFeatures = 3;

// The targets are exact linear functions of the features: `kTruth` has the weights and the bias of
// each output.
const std::vector<float> kTruth[] = {{0.5f, -1.25f, 2.0f, 0.75f}, {-0.25f, 1.5f, 0.125f, -1.0f}};

class Table {
 public:
  explicit Table(int64_t outputs, const Shape& target_shape)
      : features_(static_cast<size_t>(kSamples * kFeatures)),
        targets_(static_cast<size_t>(kSamples * outputs)) {
    const Random random(11, Purpose::kSelfTest);
    for (size_t i = 0; i < features_.size(); ++i) features_[i] = random.Normal(i);
    for (int64_t i = 0; i < kSamples * outputs; ++i) {
      const std::vector<float>& truth = kTruth[i % outputs];
      targets_[i] = truth.back();
      for (int64_t f = 0; f < kFeatures; ++f) {
        targets_[i] += truth[f] * features_[i / outputs * kFeatures + f];
      }
    }
    fields_ = {{features_.data(), {kSamples, kFeatures}, DType::kF32},
               {targets_.data(), target_shape.Prepend(kSamples), DType::kF32}};
  }

  NetInput input() const {
    NetInput input;
    input.fields = fields_;
    input.samples = input.global_samples = kSamples;
    return input;
  }

 private:
  std::vector<float> features_, targets_;
  std::vector<Tensor> fields_;
};

Graph Model(const std::string& layers, const Shape& target) {
  return Graph::FromText("name: numbers\nlayers: [" + layers + "]", "numbers.yaml",
                         {{"data", DType::kF32, {kFeatures}}, {"label", DType::kF32, target}});
}

// Returns the result of plain gradient descent, as {weights, bias} of each output.
std::vector<std::vector<float>> Fitted(const Graph& graph, const Table& table, int64_t outputs) {
  Net net(graph, {DeviceKind::kCpu, 1, CpuIsa()});
  std::vector<float> weights(static_cast<size_t>(graph.weights().size())), gradients = weights;
  graph.InitializeWeights(5, weights.data());
  double loss = 0;
  for (int step = 0; step < 400; ++step) {
    loss = net.Step(weights.data(), gradients.data(), nullptr, table.input(), nullptr).loss_sum;
    for (size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.2f * gradients[i];
  }
  EXPECT_LT(loss, 1e-6);
  std::vector<std::vector<float>> lines(static_cast<size_t>(outputs));
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t f = 0; f < kFeatures; ++f) lines[o].push_back(weights[o * kFeatures + f]);
    lines[o].push_back(weights[outputs * kFeatures + o]);
  }
  return lines;
}

TEST(NumberTargets, ALineIsFound) {
  const Graph graph = Model(
      "{name: fc, type: inner_product, outputs: 1},"
      "{name: loss, type: mean_squared_error, input: [fc, label]}",
      {});
  EXPECT_THAT(Fitted(graph, Table(1, {}), 1)[0], Pointwise(FloatNear(1e-3f), kTruth[0]));
}

TEST(NumberTargets, SeveralLinesAreFoundTogether) {
  const Graph graph = Model(
      "{name: fc, type: inner_product, outputs: 2},"
      "{name: loss, type: mean_squared_error, input: [fc, label]}",
      {2});
  const auto lines = Fitted(graph, Table(2, {2}), 2);
  for (size_t o = 0; o < 2; ++o) EXPECT_THAT(lines[o], Pointwise(FloatNear(1e-3f), kTruth[o]));
}

TEST(NumberTargets, AreNoClasses) {
  EXPECT_THAT(MessageOf<ConfigError>([] {
                Model(
                    "{name: fc, type: inner_product, outputs: 3},"
                    "{name: loss, type: softmax_cross_entropy, input: [fc, label]}",
                    {});
              }),
              HasSubstr("input 'label' holds numbers; softmax_cross_entropy takes class labels"));
}

}  // namespace
}  // namespace dtrain
