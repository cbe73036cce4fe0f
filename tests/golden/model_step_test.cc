// Compares one step of every model with PyTorch's, from the same weights and batch: loss, logits,
// the gradient of every parameter, and the batch-norm statistics. tools/pytorch/compare.py --golden
// made the numbers, in float64.
//
// A ReLU whose input is 0 except for rounding passes its gradient in one program and not in the
// other, and in a small deep layer one such place changes a gradient by half a per cent.  So
// gradients are compared twice.  "Without kinks" the model has no ReLU and average pooling instead
// of max pooling, and the gradients must be within the bound.  For the models as they are, each
// tensor's `jump` is added to the bound: its change when all kinks flip whose inputs are within
// rounding (1e-5 of the deviation of the layer's values).
//
// A tensor is compared by its norm and by its components along a few random directions.  A
// difference d has a component of about ||d|| / sqrt(3) along each, so the components bound ||d||
// without storing the tensor.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <vector>

#include "framework/core/file.h"
#include "framework/device/cpu/threads.h"
#include "framework/nn/graph.h"
#include "framework/nn/net.h"
#include "tests/golden/golden_file.h"
#include "tests/support/counted_model.h"

namespace dtrain {
namespace {

using nlohmann::json;

constexpr double kDeviations = 4;  // of a component, in standard deviations

enum class Kinks { kAsTheyAre, kWithout };

void ReplaceAll(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

// The two programs draw different random masks, so nothing is dropped here.
// tests/nn/configured_dropout_test.cc tests the models as configured.
std::string ModelText(const std::string& name, Kinks kinks) {
  std::string text = ReadFile(golden::kSource / "configs" / "models" / (name + ".yaml"));
  ReplaceAll(text, ", ratio: 0.5", "");
  ReplaceAll(text, "type: dropout", "type: dropout, ratio: 0");
  ReplaceAll(text, "dropout: 0.5, teacher_forcing: 0.5", "dropout: 0, teacher_forcing: 1");
  if (kinks == Kinks::kWithout) {
    ReplaceAll(text, "type: relu", "type: dropout, ratio: 0");
    ReplaceAll(text, "method: max", "method: average");
  }
  return text;
}

enum class Convolutions { kDirect, kByRule };

// Direct convolutions have the rounding errors of plain sums.  The kernels that the rule chooses
// (Winograd, and our own for small channels) have other errors.
std::map<std::string, std::string> KernelsOf(const Graph& graph, Convolutions convolutions) {
  std::map<std::string, std::string> kernels;
  if (convolutions == Convolutions::kByRule) return kernels;
  for (const GraphLayer& layer : graph.layers()) {
    if (layer.type == "convolution") kernels[layer.name] = "onednn";
  }
  return kernels;
}

std::span<float> Of(std::vector<float>& arena, const ArenaEntry& entry) {
  return {arena.data() + entry.range.begin, static_cast<size_t>(entry.range.size())};
}

double Norm(std::span<const float> values) {
  double sum = 0;
  for (const float v : values) sum += static_cast<double>(v) * v;
  return std::sqrt(sum);
}

class CountedModel {
 public:
  CountedModel(const std::string& name, int64_t batch, Kinks kinks, Convolutions convolutions,
               Isa isa)
      : graph_(Graph::FromText(ModelText(name, kinks), name, {})),
        net_(graph_, Device{DeviceKind::kCpu, 1, isa}, KernelsOf(graph_, convolutions)),
        samples_(batch),
        weights_(static_cast<size_t>(graph_.weights().size())),
        gradients_(weights_.size()),
        state_(static_cast<size_t>(graph_.state().size())) {
    for (const ArenaEntry& e : graph_.weights().entries)
      counted::Fill(e.name, e.shape, Of(weights_, e));
    for (const ArenaEntry& e : graph_.state().entries)
      counted::Fill(e.name, e.shape, Of(state_, e));
    if (graph_.inputs()[0].name == "source") {
      MakeSentences();
    } else {
      MakeImages();
    }
    net_.set_observer([this](const KernelTiming& call) { KeepLogits(call); });
  }

  double Evaluate() {
    const NetInput input = Input();
    return net_.Evaluate(weights_.data(), state_.data(), input).loss_sum / Terms();
  }
  double Step() {
    const NetInput input = Input();
    return net_.Step(weights_.data(), gradients_.data(), state_.data(), input, nullptr).loss_sum /
           Terms();
  }

  std::set<std::string> ConvolutionKernels() {
    net_.Prepare(Mode::kTrain, samples_);
    const auto chosen = net_.ChosenKernels(samples_);
    std::set<std::string> kernels;
    for (const GraphLayer& layer : graph_.layers()) {
      if (layer.type == "convolution") kernels.insert(chosen.at(layer.name));
    }
    return kernels;
  }

  const Graph& graph() const { return graph_; }
  const std::vector<float>& logits() const { return logits_; }  // of the last call
  int64_t classes() const { return classes_; }                  // columns of the logits
  const Tensor& Field(const std::string& name) const {
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (graph_.inputs()[i].name == name) return fields_[i];
    }
    ADD_FAILURE() << "no input " << name;
    return fields_[0];
  }
  std::span<float> Weight(const std::string& name) {
    return Find(graph_.weights(), weights_, name);
  }
  std::span<float> Gradient(const std::string& name) {
    return Find(graph_.weights(), gradients_, name);
  }
  std::span<float> State(const std::string& name) { return Find(graph_.state(), state_, name); }

 private:
  static std::span<float> Find(const ArenaLayout& layout, std::vector<float>& arena,
                               const std::string& name) {
    for (const ArenaEntry& entry : layout.entries) {
      if (entry.name == name) return Of(arena, entry);
    }
    ADD_FAILURE() << "no " << name;
    return {};
  }

  void MakeImages() {
    labels_ = {counted::Labels(samples_, 10)};
    images_ = counted::Images(labels_[0], graph_.inputs()[0].sample_shape.count());
    fields_.push_back(
        {images_.data(), graph_.inputs()[0].sample_shape.Prepend(samples_), DType::kF32});
    fields_.push_back({labels_[0].data(), Shape{samples_}, DType::kI32});
    terms_ = samples_;
  }

  void MakeSentences() {
    for (const FieldSpec& input : graph_.inputs()) {
      const bool source = input.name == "source", label = input.name == "label";
      labels_.push_back(counted::Sentences(source ? "source" : "target", samples_, input.classes,
                                           input.sample_shape[0], !label, source || label));
    }
    for (size_t i = 0; i < labels_.size(); ++i) {
      const Shape shape = graph_.inputs()[i].sample_shape.Prepend(samples_);
      fields_.push_back({labels_[i].data(), shape, DType::kI32});
    }
    for (const int32_t label : labels_.back()) terms_ += label != 1;
  }

  double Terms() const { return static_cast<double>(terms_); }

  NetInput Input() const {
    NetInput input;
    input.fields = fields_;
    input.samples = input.global_samples = samples_;
    input.global_terms = terms_;
    return input;
  }

  void KeepLogits(const KernelTiming& call) {
    const bool loss = call.layer != nullptr && call.layer->layer->role() == LayerRole::kLoss;
    if (!loss || call.backward) return;
    const Tensor& logits = call.args->inputs[0];
    logits_.assign(logits.f32(), logits.f32() + logits.shape.count());
    classes_ = logits.shape[logits.shape.rank() - 1];
  }

  Graph graph_;
  Net net_;
  int64_t samples_;
  int64_t terms_ = 0;
  int64_t classes_ = 0;
  std::vector<std::vector<int32_t>> labels_;  // labels or sentences, by input
  std::vector<float> images_, weights_, gradients_, state_, logits_;
  std::vector<Tensor> fields_;
};

using Param = std::tuple<std::string, Convolutions>;

class GoldenModel : public ::testing::TestWithParam<Param> {
 protected:
  void SetUp() override {
    ApplyThreadBudget(1);
    golden_ = golden::File(name() + "_step.json");
    Make(Kinks::kAsTheyAre, CpuIsa());
  }

  const std::string& name() const { return std::get<0>(GetParam()); }
  Convolutions convolutions() const { return std::get<1>(GetParam()); }

  void Make(Kinks kinks, Isa isa) {
    model_ = std::make_unique<CountedModel>(name(), golden_.at("batch").get<int64_t>(), kinks,
                                            convolutions(), isa);
  }

  // The rule chooses Winograd for fifteen of VGG's convolutions.  Each has about eight times the
  // error of a plain sum, and a training batch of 8 is normalised after each.
  // tools/pytorch/compare.py has the same bound, also for VGG only.
  double LogitBound(bool training) const {
    const bool by_rule = convolutions() == Convolutions::kByRule;
    return training && by_rule && name().starts_with("vgg") ? 5e-4 : 1e-4;
  }

  void ExpectLogits(const json& expected, double bound) {
    for (size_t row = 0; row < expected.size(); ++row) {
      for (size_t c = 0; c < expected[row].size(); ++c) {
        const size_t at = row * static_cast<size_t>(model_->classes()) + c;
        EXPECT_NEAR(model_->logits().at(at), expected[row][c].get<double>(), bound)
            << row << ", " << c;
      }
    }
  }

  void ExpectPyTorchsStep() {
    EXPECT_NEAR(model_->Step(), golden_.at("training").at("loss").get<double>(), 1e-4);
    ExpectLogits(golden_.at("training").at("logits"), LogitBound(true));
    ExpectGradients(golden_.at("gradients"));
    for (const auto& [name, statistic] : golden_.at("state").items()) {
      ExpectTensor(name, model_->State(name), statistic, 1e-5 * statistic.at("norm").get<double>());
    }
  }

  // Checks ||values - expected|| <= bound by the norm and along random directions.
  void ExpectTensor(const std::string& name, std::span<const float> values, const json& expected,
                    double bound) {
    EXPECT_NEAR(Norm(values), expected.at("norm").get<double>(), bound) << name;
    const std::vector<double> projections = expected.at("projections");
    for (size_t k = 0; k < projections.size(); ++k) {
      EXPECT_NEAR(counted::Projection(name, static_cast<int>(k), values), projections[k],
                  kDeviations * bound / std::sqrt(3.0))
          << name << ", direction " << k;
    }
  }

  // The bound is 5e-3 of the tensor's norm, plus 1e-6 of the norm of all gradients, plus the
  // tensor's jump.
  void ExpectGradients(const json& gradients) {
    double squares = 0;
    for (const auto& [name, gradient] : gradients.items()) {
      squares += std::pow(gradient.at("norm").get<double>(), 2);
    }
    for (const auto& [name, gradient] : gradients.items()) {
      const double own = 5e-3 * gradient.at("norm").get<double>();
      ExpectTensor(name, model_->Gradient(name), gradient,
                   own + 1e-6 * std::sqrt(squares) + gradient.value("jump", 0.0));
    }
  }

  json golden_;
  std::unique_ptr<CountedModel> model_;
};

TEST_P(GoldenModel, StartsFromPyTorchsBits) {
  const json& check = golden_.at("inputs_check");
  const std::span<float> weight = model_->Weight(check.at("parameter"));
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(weight[i], check.at("values")[i].get<double>());
  for (const auto& [name, values] : check.at("inputs").items()) {
    const Tensor& field = model_->Field(name);
    for (size_t i = 0; i < values.size(); ++i) {
      const double value = field.dtype == DType::kI32 ? field.i32()[i] : field.f32()[i];
      EXPECT_EQ(value, values[i].get<double>()) << name;
    }
  }
}

TEST_P(GoldenModel, HasPyTorchsParameters) {
  const Graph& graph = model_->graph();
  EXPECT_EQ(graph.weights().entries.size(), golden_.at("gradients").size());
  EXPECT_EQ(graph.state().entries.size(), golden_.at("state").size());
}

// These tests depend on the convolution kernels.
class GoldenKernels : public GoldenModel {};

TEST_P(GoldenKernels, RunsTheKernelsItIsNamedAfter) {
  const std::set<std::string> kernels = model_->ConvolutionKernels();
  if (convolutions() == Convolutions::kDirect) {
    EXPECT_EQ(kernels.count("onednn"), kernels.size());
  } else {
    EXPECT_EQ(kernels.count(name() == "lenet5" ? "batch_blocked" : "winograd"), 1u);
  }
}

TEST_P(GoldenKernels, EvaluatesAsPyTorch) {
  EXPECT_NEAR(model_->Evaluate(), golden_.at("evaluation").at("loss").get<double>(), 1e-4);
  ExpectLogits(golden_.at("evaluation").at("logits"), LogitBound(false));
}

TEST_P(GoldenKernels, StepsAsPyTorch) { ExpectPyTorchsStep(); }

// oneDNN chooses its instruction set once per process, so this test lowers only that of our own
// kernels. tests/nightly.sh caps oneDNN's.
TEST_P(GoldenKernels, StepsAsPyTorchWithLowerInstructionSets) {
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx}) {
    if (isa >= CpuIsa()) continue;  // covered by StepsAsPyTorch, or not supported here
    SCOPED_TRACE(IsaName(isa));
    Make(Kinks::kAsTheyAre, isa);
    ExpectPyTorchsStep();
  }
}

TEST_P(GoldenKernels, HasPyTorchsGradientsWhereNothingIsShut) {
  Make(Kinks::kWithout, CpuIsa());
  model_->Step();
  ExpectGradients(golden_.at("gradients_without_kinks"));
}

std::string NameOf(const ::testing::TestParamInfo<Param>& info) {
  const bool direct = std::get<1>(info.param) == Convolutions::kDirect;
  return std::get<0>(info.param) + (direct ? "" : "_by_rule");
}

const auto kModels =
    ::testing::Values("lenet5", "resnet18", "vgg19_bn", "vgg19_gssp", "seq2seq_attention");
const auto kDirectOnly = ::testing::Values(Convolutions::kDirect);

INSTANTIATE_TEST_SUITE_P(Models, GoldenModel, ::testing::Combine(kModels, kDirectOnly), NameOf);
INSTANTIATE_TEST_SUITE_P(Models, GoldenKernels, ::testing::Combine(kModels, kDirectOnly), NameOf);
INSTANTIATE_TEST_SUITE_P(Rule, GoldenKernels,
                         ::testing::Combine(::testing::Values("lenet5", "resnet18", "vgg19_bn",
                                                              "vgg19_gssp"),
                                            ::testing::Values(Convolutions::kByRule)),
                         NameOf);

}  // namespace
}  // namespace dtrain
