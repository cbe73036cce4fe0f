// Compares compiled nets with each other: fusion, formats, batch sizes and memory reuse change no
// result.
#include "framework/nn/net.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>
#include <limits>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/random.h"
#include "framework/nn/program.h"
#include "tests/nn/reference_net.h"
#include "tests/support/lazy_queue.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<FieldSpec> kImages = {{"data", DType::kF32, {1, 12, 12}},
                                        {"label", DType::kI32, {}}};

constexpr char kModel[] = R"(
name: small
layers:
  - {name: conv, type: convolution, outputs: 5, kernel: 3, pad: 1}
  - {name: relu, type: relu}
  - {name: pool, type: pooling, method: max, kernel: 2, stride: 2}
  - {name: flat, type: flatten}
  - {name: fc1, type: inner_product, outputs: 20}
  - {name: relu1, type: relu}
  - {name: fc2, type: inner_product, outputs: 4}
  - {name: loss, type: softmax_cross_entropy, input: [fc2, label]}
  - {name: accuracy, type: accuracy, input: [fc2, label]}
)";

// One value has three readers, so that gradients are added.
constexpr char kForked[] = R"(
name: forked
layers:
  - {name: trunk, type: inner_product, outputs: 6}
  - {name: left, type: relu, input: trunk}
  - {name: left_out, type: inner_product, outputs: 3, input: left}
  - {name: right_out, type: inner_product, outputs: 3, input: trunk}
  - {name: direct_out, type: relu, input: trunk}
  - {name: loss_left, type: softmax_cross_entropy, input: [left_out, label]}
  - {name: loss_right, type: softmax_cross_entropy, input: [right_out, label]}
  - {name: loss_direct, type: softmax_cross_entropy, input: [direct_out, label]}
)";

struct Data {
  explicit Data(int64_t samples, int64_t classes = 3)
      : images(static_cast<size_t>(samples * 144)), labels(static_cast<size_t>(samples)) {
    const Random random(3, Purpose::kSelfTest);
    for (size_t i = 0; i < images.size(); ++i) images[i] = random.Normal(i);
    for (size_t i = 0; i < labels.size(); ++i) {
      labels[i] = static_cast<int32_t>(random.Below(i, static_cast<uint64_t>(classes)));
    }
    fields = {{images.data(), {samples, 1, 12, 12}, DType::kF32, Format::kPlain},
              {labels.data(), {samples}, DType::kI32, Format::kPlain}};
  }

  // Returns rows [first, first + samples) of a global batch.
  NetInput Rows(int64_t first, int64_t samples) {
    const int64_t all = static_cast<int64_t>(labels.size());
    rows = fields;
    rows[0].data = images.data() + first * 144;
    rows[0].shape[0] = samples;
    rows[1].data = labels.data() + first;
    rows[1].shape[0] = samples;
    NetInput input;
    input.fields = rows;
    input.samples = samples;
    input.first_position = first;
    input.global_samples = all;
    return input;
  }

  std::vector<float> images;
  std::vector<int32_t> labels;
  std::vector<Tensor> fields, rows;
};

Device Cpu() { return {DeviceKind::kCpu, 1, CpuIsa()}; }

struct Result {
  double loss = 0;
  std::vector<float> gradients;
};

Result StepOf(Net& net, const NetInput& input, GradientSink* sink = nullptr) {
  const std::vector<float> weights = InitialWeights(net.graph(), 5);
  Result result;
  result.gradients.resize(weights.size());
  result.loss = net.Step(weights.data(), result.gradients.data(), nullptr, input, sink).loss_sum;
  return result;
}

void ExpectClose(const std::vector<float>& a, const std::vector<float>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << "element " << i;
}

TEST(Net, GradientsAgreeWithCentralDifferences) {
  for (const char* text : {kModel, kForked}) {
    const Graph graph = Graph::FromText(text, "m.yaml", kImages);
    Net net(graph, Cpu());
    Data data(6);
    const NetInput input = data.Rows(0, 6);
    const Result result = StepOf(net, input);
    std::vector<float> weights = InitialWeights(graph, 5);
    std::vector<float> scratch(weights.size());
    const Random random(9, Purpose::kSelfTest);
    for (int probe = 0; probe < 60; ++probe) {
      const size_t i = random.Below(static_cast<uint64_t>(probe), weights.size());
      const float kept = weights[i];
      const float h = 1e-3f;
      weights[i] = kept + h;
      const double up = net.Step(weights.data(), scratch.data(), nullptr, input, nullptr).loss_sum;
      weights[i] = kept - h;
      const double down =
          net.Step(weights.data(), scratch.data(), nullptr, input, nullptr).loss_sum;
      weights[i] = kept;
      EXPECT_NEAR((up - down) / (2 * h) / 6, result.gradients[i], 5e-3) << graph.name() << " " << i;
    }
  }
}

TEST(Net, SharesOfABatchAddUpToTheWhole) {
  const Graph graph = Graph::FromText(kModel, "m.yaml", kImages);
  Net net(graph, Cpu());
  Data data(40);
  const Result whole = StepOf(net, data.Rows(0, 40));
  std::vector<float> sum(whole.gradients.size());
  double loss = 0;
  for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 17}, {17, 23}, {40, 0}}) {
    const Result part = StepOf(net, data.Rows(first, count));
    loss += part.loss;
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += part.gradients[i];
  }
  EXPECT_NEAR(loss, whole.loss, 1e-4);
  ExpectClose(sum, whole.gradients, 1e-6);
}

TEST(Net, ASampleIsEvaluatedAlikeInAnyBatch) {
  const Graph graph = Graph::FromText(kModel, "m.yaml", kImages);
  Net net(graph, Cpu());
  Data data(37);
  const std::vector<float> weights = InitialWeights(graph, 5);
  double sum = 0;
  for (int64_t n = 0; n < 37; ++n)
    sum += net.Evaluate(weights.data(), nullptr, data.Rows(n, 1)).loss_sum;
  EXPECT_EQ(net.Evaluate(weights.data(), nullptr, data.Rows(0, 37)).loss_sum, sum);
}

TEST(Net, RepeatsToTheBitAndAfterOtherBatchSizes) {
  const Graph graph = Graph::FromText(kModel, "m.yaml", kImages);
  Net net(graph, Cpu());
  Data data(64);
  const Result first = StepOf(net, data.Rows(0, 32));
  StepOf(net, data.Rows(0, 64));  // a larger batch moves the arena
  StepOf(net, data.Rows(3, 5));
  const Result again = StepOf(net, data.Rows(0, 32));
  EXPECT_EQ(first.gradients, again.gradients);
  EXPECT_EQ(first.loss, again.loss);
}

TEST(Net, AccumulateAddsToTheGradients) {
  const Graph graph = Graph::FromText(kModel, "m.yaml", kImages);
  Net net(graph, Cpu());
  Data data(16);
  const NetInput input = data.Rows(0, 16);
  const Result once = StepOf(net, input);
  const std::vector<float> weights = InitialWeights(graph, 5);
  std::vector<float> twice = once.gradients;
  net.Step(weights.data(), twice.data(), nullptr, input, nullptr, {.first = false});
  for (float& g : twice) g /= 2;
  ExpectClose(twice, once.gradients, 1e-7);
}

class Recorder : public GradientSink {
 public:
  void Ready(Range range, const ReadyEvent& written) override {
    ranges.push_back(range);
    done.push_back(written.Done());
  }
  std::vector<Range> ranges;
  std::vector<bool> done;
};

TEST(Net, AnnouncesGradientsInArenaOrderAlsoForAnEmptyShare) {
  const Graph graph = Graph::FromText(kModel, "m.yaml", kImages);
  Net net(graph, Cpu());
  Data data(8);
  for (const int64_t samples : {8, 0}) {
    Recorder recorder;
    StepOf(net, data.Rows(0, samples), &recorder);
    int64_t end = 0;
    for (const Range& range : recorder.ranges) {
      EXPECT_EQ(range.begin, end);
      end = range.end;
    }
    EXPECT_EQ(end, graph.weights().size());
  }
}

TEST(Net, AGradientIsReadyWhenTheDeviceSaysSo) {
  const Graph graph = Graph::FromText(kModel, "m.yaml", kImages);
  const auto queue = std::make_shared<LazyQueue>();
  Device device = Cpu();
  device.queue = queue;
  Net net(graph, device);
  Data data(8);
  Recorder recorder;
  StepOf(net, data.Rows(0, 8), &recorder);
  EXPECT_THAT(recorder.done, ElementsAre(false, false, false));  // fc2, fc1, conv
  EXPECT_EQ(queue->backlog, 4) << "nobody waits before the loss is read";
  EXPECT_GE(queue->done, 4);
  Recorder of_zeros;
  StepOf(net, data.Rows(0, 0), &of_zeros);
  EXPECT_THAT(of_zeros.done, ElementsAre(false, false, false));
}

// Waits for each range when it is announced, and reads only that range.
class Taker : public GradientSink {
 public:
  explicit Taker(const std::vector<float>& gradients) : gradients_(gradients) {}
  void Ready(Range range, const ReadyEvent& written) override {
    written.Wait();
    taken.insert(taken.end(), gradients_.begin() + range.begin, gradients_.begin() + range.end);
  }
  std::vector<float> taken;

 private:
  const std::vector<float>& gradients_;
};

TEST(Net, AGradientIsInTheCallersMemoryOnceItsEventIsPast) {
  const Graph graph = Graph::FromText(kModel, "m.yaml", kImages);
  Device device = Cpu();
  device.queue = std::make_shared<LazyQueue>();
  Net lazy(graph, device), cpu(graph, Cpu());
  Data data(8);
  const std::vector<float> weights = InitialWeights(graph, 5);
  for (const int64_t samples : {8, 0}) {
    const NetInput input = data.Rows(0, samples);
    std::vector<float> gradients(weights.size(), std::numeric_limits<float>::quiet_NaN());
    Taker taker(gradients);
    const double loss =
        lazy.Step(weights.data(), gradients.data(), nullptr, input, &taker).loss_sum;
    const Result want = StepOf(cpu, input);
    EXPECT_EQ(taker.taken, want.gradients);
    EXPECT_EQ(loss, want.loss);
  }
}

// A device with a lazy queue, and the bytes copied since the last call.
struct Lazy {
  Lazy() { device.queue = queue; }
  size_t Uploaded() { return queue->uploaded - std::exchange(up, queue->uploaded); }
  size_t Downloaded() { return queue->downloaded - std::exchange(down, queue->downloaded); }

  const std::shared_ptr<LazyQueue> queue = std::make_shared<LazyQueue>();
  Device device = Cpu();
  size_t up = 0, down = 0;
};

size_t BytesOf(const NetInput& input) {
  size_t bytes = 0;
  for (const Tensor& field : input.fields) {
    bytes += static_cast<size_t>(field.shape.count()) * SizeOf(field.dtype);
  }
  return bytes;
}

TEST(Net, WhatIsInTheDevicesMemoryIsNotCopied) {
  const Graph graph = Graph::FromText(kModel, "m.yaml", kImages);
  Lazy lazy;
  Net net(graph, lazy.device), cpu(graph, Cpu());
  Data data(8);
  const NetInput input = data.Rows(0, 8);
  const std::vector<float> weights = InitialWeights(graph, 5);
  const auto count = static_cast<int64_t>(weights.size());
  const Buffer there(lazy.device, weights.size() * sizeof(float));
  const Buffer gradients(lazy.device, weights.size() * sizeof(float));
  CopyIn(there.arena(), weights.data(), count);
  lazy.Uploaded();
  const double loss = net.Step(there.arena(), gradients.arena(), nullptr, input, nullptr).loss_sum;
  EXPECT_EQ(lazy.Uploaded(), BytesOf(input));
  EXPECT_EQ(lazy.Downloaded(), 0U);
  const Result want = StepOf(cpu, input);
  EXPECT_EQ(loss, want.loss);
  std::vector<float> got(weights.size());
  CopyOut(got.data(), gradients.arena(), count);
  EXPECT_EQ(got, want.gradients);
}

TEST(Net, PartsOfAStepTakeTheWeightsOnceAndLeaveTheGradientsOnce) {
  const Graph graph = Graph::FromText(kModel, "m.yaml", kImages);
  Lazy lazy;
  Net net(graph, lazy.device), cpu(graph, Cpu());
  Data data(8);
  const NetInput input = data.Rows(0, 8);
  const std::vector<float> weights = InitialWeights(graph, 5);
  std::vector<float> got(weights.size(), NAN), want(weights.size(), NAN);
  lazy.Uploaded();
  StepInParts(net, 3, weights.data(), got.data(), nullptr, input, nullptr);
  EXPECT_EQ(lazy.Uploaded(), weights.size() * sizeof(float) + BytesOf(input));
  EXPECT_EQ(lazy.Downloaded(), weights.size() * sizeof(float));
  StepInParts(cpu, 3, weights.data(), want.data(), nullptr, input, nullptr);
  EXPECT_EQ(got, want);
}

TEST(Net, AModelThatWasBroughtIsEvaluatedWithoutAnotherCopy) {
  const Graph graph = Graph::FromText(kModel, "m.yaml", kImages);
  Lazy lazy;
  Net net(graph, lazy.device), cpu(graph, Cpu());
  Data data(8);
  const NetInput input = data.Rows(0, 8);
  const std::vector<float> weights = InitialWeights(graph, 5);
  lazy.Uploaded();
  const BroughtModel model = net.Bring(weights.data(), nullptr);
  EXPECT_EQ(lazy.Uploaded(), weights.size() * sizeof(float));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(net.Evaluate(model.weights, model.state, input).loss_sum,
              cpu.Evaluate(weights.data(), nullptr, input).loss_sum);
    EXPECT_EQ(lazy.Uploaded(), BytesOf(input));
  }
}

TEST(Net, OnTheCpuAnAnnouncedGradientIsThere) {
  const Graph graph = Graph::FromText(kModel, "m.yaml", kImages);
  Net net(graph, Cpu());
  Data data(8);
  Recorder recorder;
  StepOf(net, data.Rows(0, 8), &recorder);
  EXPECT_THAT(recorder.done, ElementsAre(true, true, true));
}

// A step in one part or in several counts as many right answers as an evaluation, because the
// scores are the same.
TEST(Net, AStepCountsWhatIsRight) {
  const Graph graph = Graph::FromText(kModel, "m.yaml", kImages);
  Net net(graph, Cpu());
  Data data(37);
  const NetInput input = data.Rows(0, 37);
  const std::vector<float> weights = InitialWeights(graph, 5);
  std::vector<float> gradients(weights.size());
  const int64_t right = net.Evaluate(weights.data(), nullptr, input).metric_counts.at(0);
  EXPECT_GT(right, 0);
  for (const int64_t parts : {1, 3, 40}) {
    const StepResult step =
        StepInParts(net, parts, weights.data(), gradients.data(), nullptr, input, nullptr);
    EXPECT_EQ(step.correct, right) << parts << " parts";
  }
  EXPECT_EQ(net.ChosenKernels(37).count("accuracy"), 0U) << "it decides no bits";
  const Graph forked = Graph::FromText(kForked, "m.yaml", kImages);
  Net without(forked, Cpu());
  const std::vector<float> others = InitialWeights(forked, 5);
  gradients.resize(others.size());
  EXPECT_EQ(without.Step(others.data(), gradients.data(), nullptr, input, nullptr).correct, -1);
}

TEST(Net, SteadyStepsAllocateNothing) {
  const Graph graph = Graph::FromText(kModel, "m.yaml", kImages);
  Net net(graph, Cpu());
  Data data(32);
  const NetInput input = data.Rows(0, 32);
  const std::vector<float> weights = InitialWeights(graph, 5);
  std::vector<float> gradients(weights.size());
  for (int i = 0; i < 2; ++i) net.Step(weights.data(), gradients.data(), nullptr, input, nullptr);
  const size_t before = mallinfo2().uordblks;
  const size_t mapped = mallinfo2().hblkhd;
  for (int i = 0; i < 5; ++i) net.Step(weights.data(), gradients.data(), nullptr, input, nullptr);
  EXPECT_EQ(mallinfo2().uordblks, before);
  EXPECT_EQ(mallinfo2().hblkhd, mapped);
}

TEST(Net, ALayerThatReachesNoLossIsAnError) {
  const Graph graph = Graph::FromText(
      "name: m\nlayers:\n  - {name: lost, type: inner_product, outputs: 2}\n"
      "  - {name: fc, type: inner_product, outputs: 3, input: data}\n"
      "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n",
      "m.yaml", kImages);
  Net net(graph, Cpu());
  try {
    net.Prepare(Mode::kTrain, 4);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("layer 'lost' has a gradient, but its output reaches no loss"));
  }
}

// The first layer has no backward pass, but its kernel still saves the data for one.
TEST(Net, AModelMayBeginWithPooling) {
  const Graph graph = Graph::FromText(
      "name: m\nlayers:\n  - {name: pool, type: pooling, method: max, kernel: 2}\n"
      "  - {name: fc, type: inner_product, outputs: 3}\n"
      "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n",
      "m.yaml", kImages);
  Net net(graph, Cpu());
  Data data(5);
  const Result result = StepOf(net, data.Rows(0, 5));
  const RefTensor images = {{5, 1, 12, 12}, {data.images.begin(), data.images.end()}};
  const RefTensor labels = {{5}, {data.labels.begin(), data.labels.end()}};
  const std::vector<float> weights = InitialWeights(graph, 5);
  const ReferenceResult want =
      ReferenceStep(graph, Mode::kTrain, {weights.begin(), weights.end()}, {}, {images, labels});
  EXPECT_NEAR(result.loss, want.loss_sum, 1e-6 * want.loss_sum);
  ASSERT_EQ(result.gradients.size(), want.gradients.size());
  for (size_t i = 0; i < want.gradients.size(); ++i) {
    EXPECT_NEAR(result.gradients[i], want.gradients[i], 1e-6) << i;
  }
}

TEST(Net, AKernelThatAPlanNamesMustExist) {
  const Graph graph = Graph::FromText(kModel, "m.yaml", kImages);
  Net net(graph, Cpu(), {{"conv", "winograd"}});
  try {
    net.Prepare(Mode::kTrain, 4);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_THAT(
        error.what(),
        HasSubstr("layer 'conv' (convolution): the execution plan names kernel 'winograd'"));
  }
}

TEST(Net, APlanMayNameAnotherKernelThanTheRule) {
  const Graph graph = Graph::FromText(kModel, "m.yaml", kImages);
  Net by_rule(graph, Cpu());
  Net planned(graph, Cpu(), {{"conv", "onednn"}});
  Data data(20);
  const Result a = StepOf(by_rule, data.Rows(0, 20));
  const Result b = StepOf(planned, data.Rows(0, 20));
  EXPECT_EQ(by_rule.ChosenKernels(20).at("conv"), "batch_blocked");
  EXPECT_EQ(planned.ChosenKernels(20).at("conv"), "onednn");
  ExpectClose(a.gradients, b.gradients, 1e-5);
}

// Returns what the calls of kModel compute, as "fc1+relu".
std::vector<std::string> FusedNames(const Accepts& accepts) {
  const Graph graph = Graph::FromText(kModel, "m.yaml", kImages);
  std::vector<std::string> names;
  for (const Call& call : FuseAll(graph, accepts)) {
    std::string name = graph.layers()[call.layer].name;
    if (call.pooling >= 0) name += "+" + graph.layers()[call.pooling].name;
    names.push_back(name + (call.fused_relu ? "+relu" : ""));
  }
  return names;
}

TEST(Fusion, ReluMovesBehindMaxPoolingAndIntoProducers) {
  EXPECT_THAT(
      FusedNames([](const Call& call) { return call.pooling < 0; }),
      ::testing::ElementsAre("conv", "pool+relu", "flat", "fc1+relu", "fc2", "loss", "accuracy"));
}

TEST(Fusion, MaxPoolingFollowsItsProducerWithItsRelu) {
  EXPECT_THAT(
      FusedNames([](const Call&) { return true; }),
      ::testing::ElementsAre("conv+pool+relu", "flat", "fc1+relu", "fc2", "loss", "accuracy"));
}

// Its output is wanted: another layer reads it.
TEST(Fusion, AProducerThatAnotherLayerReadsComputesNoPooling) {
  const Graph graph = Graph::FromText(
      "name: m\nlayers:\n  - {name: conv, type: convolution, outputs: 2, kernel: 3}\n"
      "  - {name: largest, type: pooling, kernel: 2, stride: 2}\n"
      "  - {name: mean, type: pooling, method: average, kernel: 2, stride: 2, input: conv}\n"
      "  - {name: both, type: eltwise, input: [largest, mean]}\n"
      "  - {name: flat, type: flatten}\n  - {name: fc, type: inner_product, outputs: 4}\n"
      "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n",
      "m.yaml", kImages);
  for (const Call& call : FuseAll(graph, [](const Call& c) { return !c.fused_sum; })) {
    EXPECT_EQ(call.pooling, -1) << graph.layers()[call.layer].name;
  }
}

TEST(Fusion, NothingIsFusedWhereNoKernelTakesIt) {
  const Graph graph = Graph::FromText(kModel, "m.yaml", kImages);
  EXPECT_EQ(FuseAll(graph, [](const Call&) { return false; }).size(), graph.layers().size());
}

TEST(Fusion, AValueWithSeveralReadersStaysAsItIs) {
  const Graph graph = Graph::FromText(kForked, "m.yaml", kImages);
  EXPECT_EQ(FuseAll(graph, [](const Call&) { return true; }).size(), graph.layers().size());
}

}  // namespace
}  // namespace dtrain
