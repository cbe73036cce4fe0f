// Compares whole models on the module with the same models on the CPU: losses, gradients and
// counts.  Also tests when each gradient is announced.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "framework/core/file.h"
#include "framework/core/random.h"
#include "framework/nn/net.h"
#include "tests/cuda/module_under_test.h"
#include "tests/nn/layer_harness.h"
#include "tests/support/entry_error.h"

namespace dtrain {
namespace {

constexpr int64_t kBatch = 12;  // over all workers

struct Model {
  std::string name;
  std::string text;
  std::vector<FieldSpec> inputs;  // empty if the text lists them
};

std::ostream& operator<<(std::ostream& out, const Model& model) { return out << model.name; }

const std::vector<FieldSpec> kDigits = {{"data", DType::kF32, {1, 28, 28}},
                                        {"label", DType::kI32, {}, 10}};

constexpr char kPerceptron[] = R"(
name: perceptron
layers:
  - {name: flat, type: flatten}
  - {name: fc1, type: inner_product, outputs: 50}
  - {name: relu1, type: relu}
  - {name: drop, type: dropout, ratio: 0.3}
  - {name: fc2, type: inner_product, outputs: 10}
  - {name: loss, type: softmax_cross_entropy, input: [fc2, label]}
  - {name: accuracy, type: accuracy, input: [fc2, label]}
)";

// The model has two losses, and values that several layers read, so that gradients are added.
constexpr char kWords[] = R"(
name: words
inputs:
  - {name: source, shape: [7], classes: 13}
  - {name: next, shape: [7], classes: 13}
  - {name: label, shape: [], classes: 10}
layers:
  - {name: vectors, type: embedding, input: source, outputs: 9}
  - {name: each, type: inner_product, axis: 2, outputs: 13}
  - {name: loss, type: softmax_cross_entropy, input: [each, next], ignore: 1, label_smoothing: 0.1}
  - {name: last, type: final_state, input: [vectors, source]}
  - {name: bent, type: tanh}
  - {name: fc, type: inner_product, outputs: 10}
  - {name: loss_label, type: softmax_cross_entropy, input: [fc, label]}
  - {name: top3, type: accuracy, input: [fc, label], top_k: 3}
)";

// Two losses read the same scores: the gradients that their forward passes write are added.
constexpr char kTwice[] = R"(
name: twice
layers:
  - {name: flat, type: flatten}
  - {name: hidden, type: inner_product, outputs: 12}
  - {name: bent, type: tanh}
  - {name: fc, type: inner_product, outputs: 10}
  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}
  - {name: loss_smooth, type: softmax_cross_entropy, input: [fc, label], label_smoothing: 0.2}
)";

std::vector<Model> Models() {
  return {{"perceptron", kPerceptron, kDigits},
          {"twice", kTwice, kDigits},
          {"lenet5", ReadFile(ConfigsFolder() / "models/lenet5.yaml"), kDigits},
          {"words", kWords, {}}};
}

// A batch for a graph, which can be divided into shares.
class ModelInputs {
 public:
  explicit ModelInputs(const Graph& graph) : inputs_(graph.inputs()) {
    uint64_t stream = 0;
    for (const FieldSpec& input : inputs_) {
      const Random random(11, Purpose::kSelfTest, stream++);
      const auto count = static_cast<uint64_t>(input.sample_shape.count() * kBatch);
      auto& numbers = numbers_.emplace_back();
      auto& labels = labels_.emplace_back();
      for (uint64_t i = 0; i < count; ++i) {
        if (input.dtype == DType::kF32) {
          numbers.push_back(random.Normal(i));
        } else {
          labels.push_back(
              static_cast<int32_t>(random.Below(i, static_cast<uint64_t>(input.classes))));
        }
      }
    }
  }

  // Returns samples [first, first + samples).  The result is valid until the next call.
  NetInput Share(int64_t first, int64_t samples) {
    fields_.clear();
    for (size_t f = 0; f < inputs_.size(); ++f) {
      const int64_t begin = first * inputs_[f].sample_shape.count();
      const bool is_number = inputs_[f].dtype == DType::kF32;
      void* const data = is_number ? static_cast<void*>(numbers_[f].data() + begin)
                                   : static_cast<void*>(labels_[f].data() + begin);
      fields_.push_back({data, inputs_[f].sample_shape.Prepend(samples), inputs_[f].dtype});
    }
    NetInput input;
    input.fields = fields_;
    input.samples = samples;
    input.first_position = first;
    input.global_samples = kBatch;
    input.step = 3;
    input.seed = 5;
    return input;
  }

 private:
  const std::vector<FieldSpec> inputs_;
  std::vector<std::vector<float>> numbers_;   // by input; empty if it holds labels
  std::vector<std::vector<int32_t>> labels_;  // by input; empty if it holds numbers
  std::vector<Tensor> fields_;
};

struct Result {
  double loss = 0;
  std::vector<float> gradients;
};

class ModelStep : public testing::TestWithParam<Model> {
 protected:
  ModelStep()
      : graph_(Graph::FromText(GetParam().text, GetParam().name, GetParam().inputs)),
        module_(graph_, DeviceUnderTest()),
        cpu_(graph_, {DeviceKind::kCpu, 1, CpuIsa()}),
        weights_(static_cast<size_t>(graph_.weights().size())),
        batch_(graph_) {
    graph_.InitializeWeights(7, weights_.data());
  }

  // The gradients start as NaN, so that a result which depends on them shows.
  Result Step(Net& net, const NetInput& input, int64_t parts = 1) {
    Result result;
    result.gradients.assign(weights_.size(), std::numeric_limits<float>::quiet_NaN());
    result.loss =
        StepInParts(net, parts, weights_.data(), result.gradients.data(), nullptr, input, nullptr)
            .loss_sum;
    return result;
  }

  void ExpectClose(const Result& got, const Result& want) const {
    EXPECT_NEAR(got.loss, want.loss, 1e-5 * want.loss);
    for (const ArenaEntry& entry : graph_.weights().entries) {
      const EntryError of(entry, got.gradients, want.gradients);
      EXPECT_GT(of.norm, 0) << entry.name;
      EXPECT_LE(of.error, 1e-4 * of.norm) << entry.name;
    }
  }

  const Graph graph_;
  Net module_, cpu_;
  std::vector<float> weights_;
  ModelInputs batch_;
};

TEST_P(ModelStep, TrainsAsTheCpu) {
  ExpectClose(Step(module_, batch_.Share(0, kBatch)), Step(cpu_, batch_.Share(0, kBatch)));
}

// A share has other shapes and other positions in the global batch, which decide dropout's masks.
TEST_P(ModelStep, TrainsOnAShareAsTheCpu) {
  ExpectClose(Step(module_, batch_.Share(5, 4)), Step(cpu_, batch_.Share(5, 4)));
}

TEST_P(ModelStep, TrainsInPartsAsTheCpuDoesWhole) {
  const Result whole = Step(cpu_, batch_.Share(0, kBatch));
  ExpectClose(Step(module_, batch_.Share(0, kBatch), 2), whole);
  ExpectClose(Step(module_, batch_.Share(0, kBatch), 5), whole);  // parts of 3 and of 2 samples
  const Result one = Step(cpu_, batch_.Share(8, 1));
  ExpectClose(Step(module_, batch_.Share(8, 1), 2), one);  // the second part is empty
}

TEST_P(ModelStep, RepeatsToTheBit) {
  const Result first = Step(module_, batch_.Share(0, kBatch));
  Step(module_, batch_.Share(3, 2));
  const Result again = Step(module_, batch_.Share(0, kBatch));
  EXPECT_EQ(first.loss, again.loss);
  EXPECT_EQ(first.gradients, again.gradients);
}

TEST_P(ModelStep, EvaluatesAsTheCpu) {
  for (const auto& [first, samples] : {std::pair<int64_t, int64_t>{0, kBatch}, {4, 1}}) {
    const NetInput input = batch_.Share(first, samples);
    const EvaluateResult got = module_.Evaluate(weights_.data(), nullptr, input);
    const EvaluateResult want = cpu_.Evaluate(weights_.data(), nullptr, input);
    EXPECT_EQ(got.samples, samples);
    EXPECT_NEAR(got.loss_sum, want.loss_sum, 1e-5 * want.loss_sum);
    EXPECT_EQ(got.metric_counts, want.metric_counts);
  }
}

TEST_P(ModelStep, AShareWithoutSamplesHasNoGradient) {
  const std::vector<float> zeros(weights_.size());
  EXPECT_EQ(Step(module_, batch_.Share(0, 0)).gradients, zeros);
  Step(module_, batch_.Share(0, kBatch));
  const Result result = Step(module_, batch_.Share(kBatch, 0));
  EXPECT_EQ(result.loss, 0);
  EXPECT_EQ(result.gradients, zeros);
}

// Copies each gradient as soon as it is announced and written.
class Taker : public GradientSink {
 public:
  explicit Taker(const std::vector<float>& gradients) : gradients_(gradients) {}
  void Ready(Range range, const ReadyEvent& written) override {
    EXPECT_EQ(range.begin, static_cast<int64_t>(taken.size())) << "not in the arena's order";
    written.Wait();
    EXPECT_TRUE(written.Done());
    taken.insert(taken.end(), gradients_.begin() + range.begin, gradients_.begin() + range.end);
    ++announcements;
  }
  std::vector<float> taken;
  int announcements = 0;

 private:
  const std::vector<float>& gradients_;
};

TEST_P(ModelStep, AnnouncesGradientsInArenaOrderOnceTheyAreThere) {
  for (const int64_t samples : {kBatch, int64_t{0}}) {
    for (const int64_t parts : {1, 2}) {
      std::vector<float> gradients(weights_.size(), std::numeric_limits<float>::quiet_NaN());
      Taker taker(gradients);
      StepInParts(module_, parts, weights_.data(), gradients.data(), nullptr,
                  batch_.Share(0, samples), &taker);
      EXPECT_EQ(taker.taken, gradients) << samples << " samples in " << parts << " parts";
      EXPECT_GT(taker.announcements, 1);
    }
  }
}

// Runs the large shipped models on two samples: one step, and an evaluation with its statistics.
class ShippedModel : public testing::TestWithParam<std::string> {
 protected:
  struct Outcome {
    double loss, evaluated;
    std::vector<float> gradients, state;
  };

  ShippedModel()
      : graph_(Graph::FromFile((ConfigsFolder() / "models" / (GetParam() + ".yaml")).string(),
                               InputsOf(GetParam()))),
        initial_(static_cast<size_t>(graph_.weights().size())) {
    graph_.InitializeWeights(7, initial_.data());
  }

  static std::vector<FieldSpec> InputsOf(const std::string& model) {
    if (model.starts_with("seq2seq")) return {};  // the model file lists them
    return {{"data", DType::kF32, {3, 32, 32}}, {"label", DType::kI32, {}, 10}};
  }

  Outcome Run(const Device& device, const std::map<std::string, std::string>& kernels) const {
    std::vector<float> weights = initial_;
    Net net(graph_, device, kernels);
    Outcome outcome;
    outcome.gradients.resize(weights.size());
    outcome.state.resize(static_cast<size_t>(graph_.state().size()));
    graph_.InitializeState(outcome.state.data());
    ModelInputs batch(graph_);
    const NetInput input = batch.Share(0, 2);
    outcome.loss =
        net.Step(weights.data(), outcome.gradients.data(), outcome.state.data(), input, nullptr)
            .loss_sum;
    outcome.evaluated = net.Evaluate(weights.data(), outcome.state.data(), input).loss_sum;
    return outcome;
  }

  static double Distance(const std::vector<float>& a, const std::vector<float>& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
    return std::sqrt(sum);
  }

  const Graph graph_;
  std::vector<float> initial_;  // weights
};

// Batch norm of two samples amplifies rounding, so even the CPU's own kernels differ by more than
// that.  A run with other convolution kernels measures by how much.
TEST_P(ShippedModel, TrainsAndEvaluatesAsTheCpu) {
  std::map<std::string, std::string> other;
  for (const GraphLayer& layer : graph_.layers()) {
    if (layer.type == "convolution") other[layer.name] = "onednn";
  }
  const Device cpu = {DeviceKind::kCpu, 2, CpuIsa()};
  const Outcome got = Run(DeviceUnderTest(), {}), want = Run(cpu, {}), alike = Run(cpu, other);
  const double norm = Distance(want.gradients, std::vector<float>(want.gradients.size()));
  EXPECT_NEAR(got.loss, want.loss, 1e-5 * want.loss);
  EXPECT_NEAR(got.evaluated, want.evaluated, 1e-4 * want.evaluated);
  EXPECT_LE(Distance(got.gradients, want.gradients),
            std::max(1e-4 * norm, 2 * Distance(alike.gradients, want.gradients)))
      << norm;
  for (size_t i = 0; i < got.state.size(); ++i) {
    EXPECT_NEAR(got.state[i], want.state[i], 1e-4 * (1 + std::abs(want.state[i])));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ShippedModel,
                         testing::Values("resnet18", "resnet20", "seq2seq_attention", "vgg19_bn",
                                         "vgg19_gssp"),
                         [](const auto& info) { return info.param; });

INSTANTIATE_TEST_SUITE_P(Models, ModelStep, testing::ValuesIn(Models()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace dtrain
