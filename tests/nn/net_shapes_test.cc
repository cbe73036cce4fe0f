// One net takes inputs of several shapes: each gives the result of a graph for that shape.
#include <gtest/gtest.h>
#include <malloc.h>

#include "framework/core/random.h"
#include "framework/nn/net.h"
#include "tests/nn/reference_net.h"

namespace dtrain {
namespace {

// The parameters do not depend on the size of the image.
constexpr char kSmallModel[] = R"(
name: any_size
layers:
  - {name: conv, type: convolution, outputs: 5, kernel: 3, pad: 1}
  - {name: relu, type: relu}
  - {name: pool, type: pooling, method: average, global: true}
  - {name: flat, type: flatten}
  - {name: fc, type: inner_product, outputs: 3}
  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}
)";

Graph GraphFor(int64_t size) {
  return Graph::FromText(kSmallModel, "m.yaml",
                         {{"data", DType::kF32, {2, size, size}}, {"label", DType::kI32, {}}});
}

struct Images {
  Images(int64_t samples, int64_t size) : values(samples * 2 * size * size), labels(samples) {
    const Random random(3, Purpose::kSelfTest, static_cast<uint64_t>(size));
    for (size_t i = 0; i < values.size(); ++i) values[i] = random.Normal(i);
    for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int32_t>(i % 3);
    fields = {{values.data(), {samples, 2, size, size}, DType::kF32, Format::kPlain},
              {labels.data(), {samples}, DType::kI32, Format::kPlain}};
    input.fields = fields;
    input.samples = input.global_samples = samples;
  }
  std::vector<float> values;
  std::vector<int32_t> labels;
  std::vector<Tensor> fields;
  NetInput input;
};

Device OneThread() { return {DeviceKind::kCpu, 1, CpuIsa()}; }

std::vector<float> WeightsFor(const Graph& graph) {
  std::vector<float> weights = InitialWeights(graph, 5);
  return weights;
}

// Returns the loss followed by the gradients.
std::vector<double> GradientsOf(Net& net, const NetInput& input) {
  const std::vector<float> weights = WeightsFor(net.graph());
  std::vector<float> gradients(weights.size());
  const StepResult step = net.Step(weights.data(), gradients.data(), nullptr, input, nullptr);
  std::vector<double> result{step.loss_sum};
  result.insert(result.end(), gradients.begin(), gradients.end());
  return result;
}

TEST(NetShapes, ABatchOfAnotherShapeIsComputedAsByItsOwnGraph) {
  const Graph graph = GraphFor(12);
  Net net(graph, OneThread());
  net.Prepare(Mode::kTrain, 4);
  for (const int64_t size : {12, 8, 5, 8, 16, 12}) {
    Images images(4, size);
    const Graph own = GraphFor(size);
    Net own_net(own, OneThread());
    EXPECT_EQ(GradientsOf(net, images.input), GradientsOf(own_net, images.input)) << size;
    EXPECT_EQ(net.Evaluate(WeightsFor(graph).data(), nullptr, images.input).loss_sum,
              own_net.Evaluate(WeightsFor(graph).data(), nullptr, images.input).loss_sum);
  }
}

TEST(NetShapes, MoreShapesThanProgramsAreKept) {
  const Graph graph = GraphFor(12);
  Net net(graph, OneThread());
  Images images(100, 6);
  const auto loss = [&](int64_t samples) {
    std::vector<Tensor> fields = images.fields;
    for (Tensor& field : fields) field.shape[0] = samples;
    NetInput input = images.input;
    input.fields = fields;
    input.samples = samples;
    return GradientsOf(net, input)[0];
  };
  std::vector<double> first;
  const int64_t shapes = static_cast<int64_t>(Net::kMaxPrograms) + 6;
  for (int64_t samples = 1; samples <= shapes; ++samples) first.push_back(loss(samples));
  for (int64_t samples = 1; samples <= shapes; ++samples) {
    EXPECT_EQ(loss(samples), first[samples - 1]) << samples;
  }
}

TEST(NetShapes, ShapesThatWereSeenAllocateNothing) {
  const Graph graph = GraphFor(12);
  Net net(graph, OneThread());
  net.Prepare(Mode::kTrain, 4);
  Images large(4, 12), small(4, 7);
  const std::vector<float> weights = WeightsFor(graph);
  std::vector<float> gradients(weights.size());
  const auto step = [&](Images& images) {
    net.Step(weights.data(), gradients.data(), nullptr, images.input, nullptr);
  };
  // Libraries allocate on their first calls, some of them on the second.
  for (Images* images : {&large, &small, &large, &small}) step(*images);
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 3; ++i) {
    for (Images* images : {&small, &large, &large}) step(*images);
  }
  EXPECT_EQ(mallinfo2().uordblks, before);
}

TEST(NetShapes, TheGradientIsScaledByTerms) {
  const Graph graph = GraphFor(6);
  Net net(graph, OneThread());
  Images images(4, 6);
  const std::vector<double> by_samples = GradientsOf(net, images.input);
  images.input.global_terms = 16;
  const std::vector<double> by_terms = GradientsOf(net, images.input);
  EXPECT_EQ(by_terms[0], by_samples[0]);
  for (size_t i = 1; i < by_terms.size(); ++i) EXPECT_FLOAT_EQ(by_terms[i] * 4, by_samples[i]);
}

}  // namespace
}  // namespace dtrain
