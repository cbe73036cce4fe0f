// Tests gradient accumulation: a share of a batch in parts against the whole share.
#include "framework/nn/net.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "framework/core/random.h"

namespace dtrain {
namespace {

const std::vector<FieldSpec> kImages = {{"data", DType::kF32, {1, 8, 8}},
                                        {"label", DType::kI32, {}}};

constexpr char kModel[] = R"(
name: small
layers:
  - {name: conv, type: convolution, outputs: 5, kernel: 3, pad: 1}
  - {name: relu, type: relu}
  - {name: flat, type: flatten}
  - {name: fc1, type: inner_product, outputs: 20}
  - {name: drop, type: dropout}
  - {name: fc2, type: inner_product, outputs: 4}
  - {name: loss, type: softmax_cross_entropy, input: [fc2, label]}
)";

class Recorder : public GradientSink {
 public:
  void Ready(Range range, const ReadyEvent&) override { ranges.push_back(range.begin); }
  std::vector<int64_t> ranges;
};

struct Result {
  double loss = 0;
  std::vector<float> gradients;
  std::vector<int64_t> announced;
};

Result StepOf(int64_t samples, int64_t parts) {
  const Graph graph = Graph::FromText(kModel, "m.yaml", kImages);
  Net net(graph, {DeviceKind::kCpu, 1, CpuIsa()});
  std::vector<float> weights(static_cast<size_t>(graph.weights().size()));
  graph.InitializeWeights(5, weights.data());
  std::vector<float> images(static_cast<size_t>(samples * 64));
  std::vector<int32_t> labels(static_cast<size_t>(samples));
  const Random random(3, Purpose::kSelfTest);
  for (size_t i = 0; i < images.size(); ++i) images[i] = random.Normal(i);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int32_t>(i * 7 % 4);
  const Tensor fields[] = {{images.data(), {samples, 1, 8, 8}},
                           {labels.data(), {samples}, DType::kI32}};
  NetInput input;
  input.fields = fields;
  input.samples = samples;
  input.first_position = 30;
  input.global_samples = 50;
  input.seed = 2;
  Recorder sink;
  Result result;
  result.gradients.assign(weights.size(), 777.0f);  // left by an earlier step
  result.loss =
      StepInParts(net, parts, weights.data(), result.gradients.data(), nullptr, input, &sink)
          .loss_sum;
  result.announced = sink.ranges;
  return result;
}

TEST(MicroBatches, PartsAddUpToTheWhole) {
  for (const int64_t samples : {9, 2, 1, 0}) {
    const Result whole = StepOf(samples, 1);
    for (const int64_t parts : {2, 3, 4}) {
      const Result cut = StepOf(samples, parts);
      EXPECT_NEAR(cut.loss, whole.loss, 1e-5 * (1 + whole.loss));
      for (size_t i = 0; i < whole.gradients.size(); ++i) {
        EXPECT_NEAR(cut.gradients[i], whole.gradients[i], 1e-6) << samples << " in " << parts;
      }
      EXPECT_EQ(cut.announced, whole.announced) << "each gradient once, in backward order";
    }
  }
}

TEST(MicroBatches, TheLargestPartIsTheFirst) {
  EXPECT_EQ(LargestPart(9, 4), 3);
  EXPECT_EQ(LargestPart(8, 4), 2);
  EXPECT_EQ(LargestPart(0, 4), 0);
}

}  // namespace
}  // namespace dtrain
