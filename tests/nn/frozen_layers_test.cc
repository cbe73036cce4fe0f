// Tests frozen layers in a net: a step against the reference in double, the values that stay, and
// the passes that are not computed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "framework/core/random.h"
#include "framework/device/cpu/threads.h"
#include "framework/nn/net.h"
#include "tests/nn/reference_net.h"
#include "tests/support/thread_sums.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;

// The model has norms with and without a ReLU behind them, of images and vectors, and a value that
// two layers read.
constexpr char kNormed[] = R"(
name: normed
layers:
  - {name: conv1, type: convolution, outputs: 16, kernel: 3, pad: 1, bias: false}
  - {name: bn1, type: batch_norm}
  - {name: relu1, type: relu}
  - {name: conv2, type: convolution, outputs: 16, kernel: 3, pad: 1, bias: false}
  - {name: bn2, type: batch_norm}
  - {name: add, type: eltwise, input: [bn2, relu1]}
  - {name: relu2, type: relu}
  - {name: flat, type: flatten}
  - {name: fc1, type: inner_product, outputs: 9, bias: false}
  - {name: bn3, type: batch_norm}
  - {name: relu3, type: relu}
  - {name: fc2, type: inner_product, outputs: 4}
  - {name: loss, type: softmax_cross_entropy, input: [fc2, label]}
)";
constexpr int64_t kFrozenSamples = 6, kFrozenPixels = 3 * 8 * 8;

// A graph with the given layers frozen, a batch, and weights and state that differ from their
// initial values.
struct FrozenModel {
  explicit FrozenModel(const std::vector<std::string>& frozen, bool sync = false)
      : graph(Graph::FromText(kNormed, "m.yaml",
                              {{"data", DType::kF32, {3, 8, 8}}, {"label", DType::kI32, {}}})),
        images(kFrozenSamples * kFrozenPixels),
        labels(kFrozenSamples) {
    if (sync) graph.SyncWorkers();
    for (const std::string& pattern : frozen) EXPECT_GT(graph.Freeze(pattern), 0) << pattern;
    weights = InitialWeights(graph, 5);
    gradients.assign(weights.size(), std::numeric_limits<float>::quiet_NaN());
    state.resize(static_cast<size_t>(graph.state().size()));
    graph.InitializeState(state.data());
    const Random random(13, Purpose::kSelfTest);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] += 0.05f * random.Normal(i);
    for (size_t i = 0; i < state.size(); ++i) state[i] += random.Uniform(i, 0.1f, 0.6f);
    for (size_t i = 0; i < images.size(); ++i) images[i] = random.Normal(1000 + i);
    for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int32_t>(i % 4);
  }

  // Returns the first `samples` samples of the batch.
  NetInput Input(int64_t samples = kFrozenSamples) {
    fields = {{images.data(), {samples, 3, 8, 8}}, {labels.data(), {samples}, DType::kI32}};
    NetInput input;
    input.fields = fields;
    input.samples = samples;
    input.global_samples = kFrozenSamples;
    return input;
  }

  ReferenceResult Reference() const { return Reference({weights.begin(), weights.end()}); }
  ReferenceResult Reference(const std::vector<double>& of, Mode mode = Mode::kTrain) const {
    const std::vector<RefTensor> inputs = {
        {{kFrozenSamples, 3, 8, 8}, {images.begin(), images.end()}},
        {{kFrozenSamples}, {labels.begin(), labels.end()}}};
    return ReferenceStep(graph, mode, of, {state.begin(), state.end()}, inputs);
  }

  bool IsFrozen(const std::string& layer) const {
    return std::ranges::find(graph.layers(), layer, &GraphLayer::name)->frozen;
  }

  Graph graph;
  std::vector<float> images;
  std::vector<int32_t> labels;
  std::vector<Tensor> fields;
  std::vector<float> weights, gradients, state;
};

// Compares each entry by itself.  The values of a frozen layer must equal `kept`, or zero without
// it, to the bit.
void ExpectEntries(const FrozenModel& model, const ArenaLayout& layout,
                   const std::vector<float>& got, const std::vector<double>& want,
                   const std::vector<float>* kept) {
  for (const ArenaEntry& entry : layout.entries) {
    const bool frozen = model.IsFrozen(entry.name.substr(0, entry.name.find('.')));
    double difference = 0, norm = 0;
    for (int64_t i = entry.range.begin; i < entry.range.end; ++i) {
      if (frozen) {
        ASSERT_EQ(got[i], kept == nullptr ? 0 : (*kept)[i]) << entry.name;
      }
      difference += (got[i] - want[i]) * (got[i] - want[i]);
      norm += want[i] * want[i];
    }
    EXPECT_LE(std::sqrt(difference), 2e-5 * std::sqrt(norm)) << entry.name;
    EXPECT_EQ(norm > 0 || kept != nullptr, !frozen || kept != nullptr) << entry.name;
  }
}

const std::vector<std::string> kFrozenSets[] = {
    {"bn*"}, {"conv1", "bn1"}, {"conv*", "bn*", "fc1"}, {"bn2", "fc*"}, {"bn3"}};

class FrozenNet : public testing::TestWithParam<int> {
 protected:
  Device device() const { return {DeviceKind::kCpu, GetParam(), CpuIsa()}; }
  void SetUp() override { ApplyThreadBudget(GetParam()); }
  void TearDown() override { ApplyThreadBudget(1); }
};

TEST_P(FrozenNet, AStepIsTheReferencesAndKeepsWhatIsFrozen) {
  for (const std::vector<std::string>& frozen : kFrozenSets) {
    SCOPED_TRACE(frozen[0]);
    FrozenModel model(frozen);
    const std::vector<float> before = model.state;
    const ReferenceResult want = model.Reference();
    Net net(model.graph, device());
    const StepResult got = net.Step(model.weights.data(), model.gradients.data(),
                                    model.state.data(), model.Input(), nullptr);
    EXPECT_NEAR(got.loss_sum, want.loss_sum, 1e-5 * want.loss_sum);
    ExpectEntries(model, model.graph.weights(), model.gradients, want.gradients, nullptr);
    ExpectEntries(model, model.graph.state(), model.state, want.next_state, &before);
  }
}

TEST_P(FrozenNet, AnEstimateOfTheStateIsTheReferencesAndKeepsWhatIsFrozen) {
  for (const std::vector<std::string>& frozen : {std::vector<std::string>{}, {"bn2"}, {"bn3"}}) {
    SCOPED_TRACE(frozen.empty() ? "none" : frozen[0]);
    FrozenModel model(frozen);
    const std::vector<float> before = model.state;
    const ReferenceResult want =
        model.Reference({model.weights.begin(), model.weights.end()}, Mode::kEstimate);
    Net net(model.graph, device());
    const EvaluateResult got =
        net.EstimateState(model.weights.data(), model.state.data(), model.Input());
    EXPECT_NEAR(got.loss_sum, want.loss_sum, 1e-5 * want.loss_sum);
    ExpectEntries(model, model.graph.state(), model.state, want.next_state, &before);
    // The loss is that of training on the batch.
    FrozenModel trained(frozen);
    EXPECT_NEAR(got.loss_sum, trained.Reference().loss_sum, 1e-5 * want.loss_sum);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, FrozenNet, testing::Values(1, 2));

// The gradients pass through frozen norms; the layer suite tests a single norm only.
TEST(FrozenLayers, TheReferenceAgreesWithCentralDifferences) {
  const FrozenModel model({"bn*", "fc1"});
  std::vector<double> weights(model.weights.begin(), model.weights.end());
  const ReferenceResult result = model.Reference(weights);
  const Random random(9, Purpose::kSelfTest);
  for (const ArenaEntry& entry : model.graph.weights().entries) {
    if (entry.lr_factor == 0) continue;
    const auto size = static_cast<uint64_t>(entry.range.size());
    for (uint64_t probe = 0; probe < 4; ++probe) {
      double& weight = weights[static_cast<size_t>(entry.range.begin) + random.Below(probe, size)];
      const double kept = weight;
      weight = kept + 1e-6;
      const double up = model.Reference(weights).loss_sum;
      weight = kept - 1e-6;
      const double down = model.Reference(weights).loss_sum;
      weight = kept;
      EXPECT_NEAR(result.gradients[static_cast<size_t>(&weight - weights.data())],
                  (up - down) / 2e-6 / kFrozenSamples, 1e-7)
          << entry.name;
    }
  }
}

// A training step gives the loss that an evaluation of the same batch gives.
TEST(FrozenLayers, AFrozenNormTrainsAsItIsEvaluated) {
  FrozenModel model({"bn*"});
  Net net(model.graph, {DeviceKind::kCpu, 1, CpuIsa()});
  const double trained = net.Step(model.weights.data(), model.gradients.data(), model.state.data(),
                                  model.Input(), nullptr)
                             .loss_sum;
  EXPECT_EQ(trained,
            net.Evaluate(model.weights.data(), model.state.data(), model.Input()).loss_sum);
}

// The running statistics also normalise a batch that has no variance.
TEST(FrozenLayers, AFrozenNormTrainsOnOneValueOfAChannel) {
  FrozenModel model({"bn*"});
  Net net(model.graph, {DeviceKind::kCpu, 1, CpuIsa()});
  const StepResult got = net.Step(model.weights.data(), model.gradients.data(), model.state.data(),
                                  model.Input(1), nullptr);
  EXPECT_TRUE(std::isfinite(got.loss_sum));
}

TEST(FrozenLayers, PartsAddUpToTheShare) {
  FrozenModel whole({"bn*", "fc1"}), parts({"bn*", "fc1"});
  Net net(whole.graph, {DeviceKind::kCpu, 1, CpuIsa()});
  net.Step(whole.weights.data(), whole.gradients.data(), whole.state.data(), whole.Input(),
           nullptr);
  StepInParts(net, 3, parts.weights.data(), parts.gradients.data(), parts.state.data(),
              parts.Input(), nullptr);
  EXPECT_EQ(parts.state, whole.state);
  const std::vector<double> want(whole.gradients.begin(), whole.gradients.end());
  ExpectEntries(parts, parts.graph.weights(), parts.gradients, want, nullptr);
}

class Announced : public GradientSink {
 public:
  void Ready(Range range, const ReadyEvent&) override { ranges.push_back(range); }
  std::vector<Range> ranges;
};

// Gradients that no layer needs are not computed, but all ranges are announced in their order.
TEST(FrozenLayers, NothingIsComputedBackwardBelowTheFirstLayerThatLearns) {
  FrozenModel model({"conv*", "bn1", "bn2", "fc1"});
  Net net(model.graph, {DeviceKind::kCpu, 1, CpuIsa()});
  std::vector<std::string> backward;
  net.set_observer([&](const KernelTiming& timing) {
    if (timing.backward) backward.push_back(*timing.name);
  });
  Announced announced;
  net.Step(model.weights.data(), model.gradients.data(), model.state.data(), model.Input(),
           &announced);
  EXPECT_THAT(backward, ElementsAre("loss", "fc2", "bn3"));
  std::vector<Range> wanted;
  for (const GraphLayer& layer : model.graph.layers()) {
    if (!layer.params.empty()) wanted.insert(wanted.begin(), layer.param_range);
  }
  EXPECT_EQ(announced.ranges, wanted);
}

TEST(FrozenLayers, CostWhatIsComputed) {
  const FrozenModel all({"bn*", "conv2"}), head({"conv*", "bn*", "fc1"});
  const auto layer = [](const FrozenModel& model, const char* name) {
    return *std::ranges::find(model.graph.layers(), name, &GraphLayer::name);
  };
  EXPECT_GT(layer(all, "bn1").cost.backward_flops, 0) << "conv1 learns";
  EXPECT_EQ(layer(head, "bn1").cost.backward_flops, 0);
  EXPECT_EQ(layer(head, "relu3").cost.backward_flops, 0);
  EXPECT_GT(layer(head, "bn1").cost.forward_flops, 0);
  EXPECT_LT(layer(head, "fc2").cost.backward_flops, layer(all, "fc2").cost.backward_flops);
}

class NoSums : public WorkerSums {
 public:
  void Sum(std::span<double>) override { ADD_FAILURE() << "a frozen layer asks nobody"; }
};

TEST(FrozenLayers, AFrozenNormSumsNothingOverTheWorkers) {
  FrozenModel model({"bn*"}, /*sync=*/true);
  EXPECT_FALSE(model.graph.syncs_workers());
  const std::vector<float> before = model.state;
  NoSums sums;
  Net net(model.graph, {DeviceKind::kCpu, 1, CpuIsa()});
  for (const int64_t samples : {kFrozenSamples, int64_t{0}}) {
    NetInput input = model.Input(samples);
    input.worker_sums = &sums;
    net.Step(model.weights.data(), model.gradients.data(), model.state.data(), input, nullptr);
    EXPECT_EQ(model.state, before);
  }
}

// Only some norms are frozen: the others still need every worker.
TEST(FrozenLayers, AWorkerWithoutSamplesKeepsWhatIsFrozen) {
  FrozenModel model({"bn1", "bn3"}, /*sync=*/true);
  EXPECT_TRUE(model.graph.syncs_workers());
  const std::vector<float> before = model.state;
  std::vector<float> none(before), gradients(model.gradients.size());
  ThreadSums sums(2);
  std::thread idle([&] {
    OneOfThreads mine(sums, 1);
    Net net(model.graph, {DeviceKind::kCpu, 1, CpuIsa()});
    NetInput input;
    input.worker_sums = &mine;
    net.Step(model.weights.data(), gradients.data(), none.data(), input, nullptr);
  });
  OneOfThreads mine(sums, 0);
  Net net(model.graph, {DeviceKind::kCpu, 1, CpuIsa()});
  NetInput input = model.Input();
  input.worker_sums = &mine;
  net.Step(model.weights.data(), model.gradients.data(), model.state.data(), input, nullptr);
  idle.join();
  EXPECT_EQ(none, model.state);
  for (const ArenaEntry& entry : model.graph.state().entries) {
    const bool frozen = model.IsFrozen(entry.name.substr(0, entry.name.find('.')));
    EXPECT_EQ(model.state[entry.range.begin] == before[entry.range.begin], frozen) << entry.name;
  }
}

// lr_factor 0 does not freeze a layer: the solver keeps its parameters, but its statistics change.
TEST(FrozenLayers, ARateOfZeroLeavesTheStatisticsMoving) {
  std::string text = kNormed;
  text.replace(text.find("{name: bn1, type: batch_norm"), 28,
               "{name: bn1, lr_factor: 0, type: batch_norm");
  const Graph graph = Graph::FromText(
      text, "m.yaml", {{"data", DType::kF32, {3, 8, 8}}, {"label", DType::kI32, {}}});
  for (const GraphLayer& layer : graph.layers()) EXPECT_FALSE(layer.frozen);
  for (const ArenaEntry& entry : graph.state().entries) EXPECT_EQ(entry.lr_factor, 1) << entry.name;
}

}  // namespace
}  // namespace dtrain
