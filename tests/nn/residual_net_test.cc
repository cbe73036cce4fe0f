// Tests nets with branches and batch normalisation: compares them with a whole net in double, and
// trains them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include <cmath>

#include "framework/core/error.h"
#include "framework/core/random.h"
#include "framework/device/cpu/threads.h"
#include "framework/nn/net.h"
#include "framework/nn/program.h"
#include "tests/nn/reference_net.h"

namespace dtrain {
namespace {

// The model has the blocks of configs/models/resnet18.yaml, with few and with sixteen channels, so
// that kernels and formats mix.
constexpr char kResidual[] = R"(
name: residual
blocks:
  basic:
    arguments: [width]
    layers:
      - {name: conv1, type: convolution, outputs: $width, kernel: 3, pad: 1, bias: false}
      - {name: bn1, type: batch_norm}
      - {name: relu1, type: relu}
      - {name: conv2, type: convolution, outputs: $width, kernel: 3, pad: 1, bias: false}
      - {name: bn2, type: batch_norm}
      - {name: add, type: eltwise, input: [bn2, input]}
      - {name: relu2, type: relu}
  down:
    arguments: [width]
    layers:
      - {name: conv1, type: convolution, outputs: $width, kernel: 3, stride: 2, pad: 1, bias: false}
      - {name: bn1, type: batch_norm}
      - {name: shortcut, type: convolution, outputs: $width, kernel: 1, stride: 2, bias: false, input: input}
      - {name: shortcut_bn, type: batch_norm}
      - {name: add, type: eltwise, input: [bn1, shortcut_bn]}
      - {name: relu, type: relu}
layers:
  - {name: conv, type: convolution, outputs: 5, kernel: 3, pad: 1, bias: false}
  - {name: bn, type: batch_norm}
  - {name: relu, type: relu}
  - {name: stage1, block: basic, width: 5}
  - {name: stage2.0, block: down, width: 16}
  - {name: stage2.1, block: basic, width: 16}
  - {name: pool, type: pooling, method: average, global: true}
  - {name: flatten, type: flatten}
  - {name: fc, type: inner_product, outputs: 4}
  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}
)";

// The model has groups, dilation, windows with unequal sides, and the product and maximum of
// branches with a ReLU after each.
constexpr char kSeparable[] = R"(
name: separable
layers:
  - {name: wide, type: convolution, outputs: 16, kernel: [1, 3], pad: [0, 1]}
  - {name: depth, type: convolution, outputs: 16, kernel: 3, pad: 1, groups: 16, bias: false}
  - {name: relu1, type: relu}
  - {name: point, type: convolution, outputs: 8, kernel: 1, groups: 2}
  - {name: far, type: convolution, outputs: 8, kernel: 3, dilation: 2, pad: 2, input: depth}
  - {name: gate, type: eltwise, operation: product, input: [point, far]}
  - {name: relu2, type: relu}
  - {name: best, type: eltwise, operation: max, input: [point, far, relu2]}
  - {name: relu3, type: relu}
  - {name: adaptive, type: pooling, adaptive: [3, 5]}
  - {name: mean, type: pooling, method: average, adaptive: [2, 3]}
  - {name: total, type: eltwise, input: [mean, mean, mean]}
  - {name: flatten, type: flatten}
  - {name: fc, type: inner_product, outputs: 4}
  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}
)";

struct Batch {
  Batch(int64_t samples, const Shape& sample, uint64_t classes)
      : images(static_cast<size_t>(samples * sample.count())),
        labels(static_cast<size_t>(samples)) {
    const Random random(11, Purpose::kSelfTest);
    for (size_t i = 0; i < images.size(); ++i) images[i] = random.Normal(i);
    for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int32_t>(i % classes);
    fields = {{images.data(), sample.Prepend(samples), DType::kF32, Format::kPlain},
              {labels.data(), {samples}, DType::kI32, Format::kPlain}};
    input.fields = fields;
    input.samples = input.global_samples = samples;
  }

  std::vector<RefTensor> AsReference() const {
    return {{fields[0].shape, {images.begin(), images.end()}},
            {fields[1].shape, {labels.begin(), labels.end()}}};
  }

  std::vector<float> images;
  std::vector<int32_t> labels;
  std::vector<Tensor> fields;
  NetInput input;
};

std::vector<double> Widen(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

// A graph with weights, state and space for gradients.
struct ResidualModel {
  explicit ResidualModel(Graph g)
      : graph(std::move(g)),
        weights(static_cast<size_t>(graph.weights().size())),
        gradients(weights.size()),
        state(static_cast<size_t>(graph.state().size())) {
    graph.InitializeWeights(5, weights.data());
    graph.InitializeState(state.data());
  }

  // Changes the weights and running statistics of batch norm, whose constant initial values hide
  // errors.
  void Disturb() {
    const Random random(13, Purpose::kSelfTest);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] += 0.05f * random.Normal(i);
    for (size_t i = 0; i < state.size(); ++i) state[i] += random.Uniform(i, 0.0f, 0.3f);
  }

  Graph graph;
  std::vector<float> weights, gradients, state;
};

const Shape kSmall = {3, 8, 8};

ResidualModel Residual(const char* text = kResidual) {
  ResidualModel model(
      Graph::FromText(text, "m.yaml", {{"data", DType::kF32, kSmall}, {"label", DType::kI32, {}}}));
  model.Disturb();
  return model;
}

void ExpectClose(const ArenaLayout& layout, const std::vector<float>& got,
                 const std::vector<double>& want, double tolerance) {
  for (const ArenaEntry& entry : layout.entries) {
    double difference = 0, norm = 0;
    for (int64_t i = entry.range.begin; i < entry.range.end; ++i) {
      difference += (got[i] - want[i]) * (got[i] - want[i]);
      norm += want[i] * want[i];
    }
    EXPECT_GT(norm, 0) << entry.name;
    EXPECT_LE(std::sqrt(difference), tolerance * std::sqrt(norm)) << entry.name;
  }
}

class BranchedNet : public testing::TestWithParam<const char*> {};

TEST_P(BranchedNet, TheReferenceAgreesWithCentralDifferences) {
  const ResidualModel model = Residual(GetParam());
  const std::vector<RefTensor> batch = Batch(2, kSmall, 4).AsReference();
  const std::vector<double> state = Widen(model.state);
  std::vector<double> weights = Widen(model.weights);
  const auto step = [&] { return ReferenceStep(model.graph, Mode::kTrain, weights, state, batch); };
  const ReferenceResult result = step();
  const Random random(9, Purpose::kSelfTest);
  for (uint64_t probe = 0; probe < 16; ++probe) {
    const size_t i = random.Below(probe, weights.size());
    const double kept = weights[i];
    weights[i] = kept + 1e-6;
    const double up = step().loss_sum;
    weights[i] = kept - 1e-6;
    const double down = step().loss_sum;
    weights[i] = kept;
    EXPECT_NEAR((up - down) / 2e-6 / 2, result.gradients[i], 1e-7) << i;
  }
}

// Freezes the layers from the input on, one more each time, and each layer alone.  The other layers
// get the reference's gradients.
TEST_P(BranchedNet, FrozenLayersLeaveTheGradientsOfTheOthers) {
  std::vector<std::vector<std::string>> sets;
  const ResidualModel all = Residual(GetParam());
  for (const GraphLayer& layer : all.graph.layers()) {
    if (layer.params.empty()) continue;
    std::vector<std::string> below =
        sets.empty() ? std::vector<std::string>() : sets[sets.size() - 2];
    below.push_back(layer.name);
    sets.push_back(below);
    sets.push_back({layer.name});
  }
  sets.resize(sets.size() - 2);  // the last but one set would freeze all layers
  Batch batch(5, kSmall, 4);
  for (const std::vector<std::string>& frozen : sets) {
    SCOPED_TRACE(testing::PrintToString(frozen));
    ResidualModel model = Residual(GetParam());
    for (const std::string& name : frozen) ASSERT_EQ(model.graph.Freeze(name), 1);
    const ReferenceResult want = ReferenceStep(model.graph, Mode::kTrain, Widen(model.weights),
                                               Widen(model.state), batch.AsReference());
    const std::vector<float> before = model.state;
    Net net(model.graph, {DeviceKind::kCpu, 1, CpuIsa()});
    net.Step(model.weights.data(), model.gradients.data(), model.state.data(), batch.input,
             nullptr);
    for (const ArenaEntry& entry : model.graph.weights().entries) {
      double difference = 0, norm = 0;
      for (int64_t i = entry.range.begin; i < entry.range.end; ++i) {
        difference += std::pow(model.gradients[i] - want.gradients[i], 2);
        norm += std::pow(want.gradients[i], 2);
      }
      EXPECT_EQ(norm == 0, entry.lr_factor == 0) << entry.name;
      EXPECT_LE(std::sqrt(difference), 2e-5 * std::sqrt(norm)) << entry.name;
    }
    for (const ArenaEntry& entry : model.graph.state().entries) {
      EXPECT_EQ(model.state[entry.range.begin] == before[entry.range.begin], entry.lr_factor == 0)
          << entry.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, BranchedNet, testing::Values(kResidual, kSeparable),
                         [](const auto& info) {
                           return info.index == 0 ? "residual" : "separable";
                         });

class ResidualNetOnThreads : public testing::TestWithParam<int> {
 protected:
  Device device() const { return {DeviceKind::kCpu, GetParam(), CpuIsa()}; }
  void SetUp() override { ApplyThreadBudget(GetParam()); }
  void TearDown() override { ApplyThreadBudget(1); }
};

TEST_P(ResidualNetOnThreads, AStepIsTheReferences) {
  for (const std::string kernel : {"by rule", "onednn"}) {
    SCOPED_TRACE(kernel);
    ResidualModel model = Residual();
    std::map<std::string, std::string> plan;
    for (const GraphLayer& layer : model.graph.layers()) {
      if (layer.type == "convolution" && kernel == "onednn") plan[layer.name] = kernel;
    }
    Net net(model.graph, device(), plan);
    Batch batch(5, kSmall, 4);
    const ReferenceResult want = ReferenceStep(model.graph, Mode::kTrain, Widen(model.weights),
                                               Widen(model.state), batch.AsReference());
    const StepResult got = net.Step(model.weights.data(), model.gradients.data(),
                                    model.state.data(), batch.input, nullptr);
    EXPECT_NEAR(got.loss_sum, want.loss_sum, 1e-5 * want.loss_sum);
    ExpectClose(model.graph.weights(), model.gradients, want.gradients, 2e-5);
    ExpectClose(model.graph.state(), model.state, want.next_state, 1e-6);
  }
}

TEST_P(ResidualNetOnThreads, AStepOfTheSeparableNetIsTheReferences) {
  ResidualModel model = Residual(kSeparable);
  Net net(model.graph, device());
  Batch batch(19, kSmall, 4);
  const ReferenceResult want =
      ReferenceStep(model.graph, Mode::kTrain, Widen(model.weights), {}, batch.AsReference());
  const StepResult got =
      net.Step(model.weights.data(), model.gradients.data(), nullptr, batch.input, nullptr);
  EXPECT_NEAR(got.loss_sum, want.loss_sum, 1e-5 * want.loss_sum);
  ExpectClose(model.graph.weights(), model.gradients, want.gradients, 2e-5);
  const ReferenceResult shown =
      ReferenceStep(model.graph, Mode::kEvaluate, Widen(model.weights), {}, batch.AsReference());
  EXPECT_NEAR(net.Evaluate(model.weights.data(), nullptr, batch.input).loss_sum, shown.loss_sum,
              1e-5 * shown.loss_sum);
}

TEST_P(ResidualNetOnThreads, EvaluationTakesTheRunningStatistics) {
  ResidualModel model = Residual();
  Net net(model.graph, device());
  Batch batch(5, kSmall, 4);
  const std::vector<float> before = model.state;
  const ReferenceResult want = ReferenceStep(model.graph, Mode::kEvaluate, Widen(model.weights),
                                             Widen(model.state), batch.AsReference());
  const EvaluateResult got = net.Evaluate(model.weights.data(), model.state.data(), batch.input);
  EXPECT_NEAR(got.loss_sum, want.loss_sum, 1e-5 * want.loss_sum);
  EXPECT_EQ(model.state, before);
}

INSTANTIATE_TEST_SUITE_P(Threads, ResidualNetOnThreads, testing::Values(1, 2));

TEST(ResidualNet, TheReluOfABlockIsFusedIntoNormAndSum) {
  const ResidualModel model = Residual();
  std::vector<std::string> fused;
  for (const Call& call : FuseAll(model.graph, [](const Call& c) { return !c.fused_sum; })) {
    const GraphLayer& layer = model.graph.layers()[call.layer];
    EXPECT_NE(layer.type, "relu");
    if (call.fused_relu) fused.push_back(layer.name);
  }
  EXPECT_THAT(fused, testing::ElementsAre("bn", "stage1.bn1", "stage1.add", "stage2.0.add",
                                          "stage2.1.bn1", "stage2.1.add"));
}

// A sum joins the layer that makes one of its terms, with its ReLU, behind what makes the other one.
TEST(ResidualNet, TheSumOfABlockIsFusedIntoNorm) {
  const ResidualModel model = Residual();
  const auto accepts = [&](const Call& call) {
    return !call.fused_sum || model.graph.layers()[call.layer].type == "batch_norm";
  };
  std::vector<std::string> fused;
  std::set<int> made;
  for (size_t i = 0; i < model.graph.inputs().size(); ++i) made.insert(static_cast<int>(i));
  for (const Call& call : FuseAll(model.graph, accepts)) {
    const GraphLayer& layer = model.graph.layers()[call.layer];
    for (const int input : call.inputs) EXPECT_TRUE(made.contains(input)) << layer.name;
    made.insert(call.output);
    EXPECT_NE(layer.type, "eltwise");
    if (!call.fused_sum) continue;
    EXPECT_TRUE(call.fused_relu) << layer.name;
    EXPECT_EQ(call.inputs.size(), 2U);
    fused.push_back(layer.name);
  }
  EXPECT_THAT(fused, testing::ElementsAre("stage1.bn2", "stage2.0.shortcut_bn", "stage2.1.bn2"));
}

TEST(ResidualNet, TheReluOfASeparableNetIsFusedIntoProductsAndBehindMaxima) {
  const ResidualModel model = Residual(kSeparable);
  const auto accepts = [](const Call& call) { return !call.fused_sum && call.pooling < 0; };
  std::vector<std::string> fused;
  for (const Call& call : FuseAll(model.graph, accepts)) {
    if (call.fused_relu) fused.push_back(model.graph.layers()[call.layer].name);
  }
  EXPECT_THAT(fused, testing::ElementsAre("gate", "adaptive"));
}

TEST(ResidualNet, TrainingOnOneValueOfAChannelIsRefused) {
  const Graph graph = Graph::FromText(
      "name: m\nlayers:\n  - {name: fc, type: inner_product, outputs: 3}\n"
      "  - {name: bn, type: batch_norm}\n"
      "  - {name: loss, type: softmax_cross_entropy, input: [bn, label]}\n",
      "m.yaml", {{"data", DType::kF32, {4}}, {"label", DType::kI32, {}}});
  Net net(graph, {DeviceKind::kCpu, 1, CpuIsa()});
  net.Prepare(Mode::kEvaluate, 1);
  try {
    net.Prepare(Mode::kTrain, 1);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(
        error.what(),
        "batch_norm cannot train on a batch with one value a channel: that has no variance");
    EXPECT_THAT(error.hint(), ::testing::HasSubstr("last batch"));
  }
}

// A narrow net needs a larger learning rate.
struct Shipped {
  const char* name;
  float rate;
};

// Trains on two random images until they are memorised.
class ShippedModel : public testing::TestWithParam<Shipped> {};

TEST_P(ShippedModel, LearnsRandomImages) {
  ApplyThreadBudget(1);
  ResidualModel model(Graph::FromFile(
      std::string(DTRAIN_SOURCE_DIR) + "/configs/models/" + GetParam().name + ".yaml", {}));
  Net net(model.graph, {DeviceKind::kCpu, 1, CpuIsa()});
  Batch batch(2, {3, 32, 32}, 10);
  std::vector<double> losses;
  for (int step = 0; step < 6; ++step) {
    losses.push_back(net.Step(model.weights.data(), model.gradients.data(), model.state.data(),
                              batch.input, nullptr)
                         .loss_sum /
                     2);
    for (size_t i = 0; i < model.weights.size(); ++i) {
      model.weights[i] -= GetParam().rate * model.gradients[i];
    }
  }
  EXPECT_NEAR(losses.front(), std::log(10.0), 1.5);
  EXPECT_LT(losses.back(), losses.front() / 4) << testing::PrintToString(losses);
}

INSTANTIATE_TEST_SUITE_P(Models, ShippedModel,
                         testing::Values(Shipped{"resnet18", 0.005f}, Shipped{"resnet20", 0.05f},
                                         Shipped{"vgg19_bn", 0.005f}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace dtrain
