// Compares shipped models, made small but with their dropout and teacher forcing, with the
// reference net in double precision.  (The golden tests switch both off, because PyTorch draws
// other masks.) random_choices_test.cc compares the masks of the references with an oracle.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "framework/core/file.h"
#include "framework/core/random.h"
#include "framework/device/cpu/threads.h"
#include "framework/nn/net.h"
#include "tests/nn/reference_net.h"

namespace dtrain {
namespace {

constexpr int64_t kDroppedSamples = 6;

std::string ShippedModel(const std::string& name) {
  return ReadFile(DTRAIN_SOURCE_DIR "/configs/models/" + name + ".yaml");
}

void Replace(std::string& text, const std::string& from, const std::string& to) {
  ASSERT_NE(text.find(from), std::string::npos) << from;
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

// A batch for the graph's inputs, in the forms that the net and the reference take.
struct Fields {
  explicit Fields(const Graph& graph) {
    const Random random(6, Purpose::kSelfTest);
    uint64_t next = 0;
    for (const FieldSpec& input : graph.inputs()) {
      const Shape shape = input.sample_shape.Prepend(kDroppedSamples);
      RefTensor& values = reference.emplace_back(RefTensor{shape, {}});
      for (int64_t i = 0; i < shape.count(); ++i, ++next) {
        const bool number = input.dtype == DType::kF32;
        // Words are numbered after <pad>, <sos> and <eos>; labels from 0.
        const uint64_t first = input.sample_shape.rank() > 0 ? 4 : 0;
        const double value =
            number ? random.Normal(next)
                   : static_cast<double>(
                         first + random.Below(next, static_cast<uint64_t>(input.classes) - first));
        values.values.push_back(value);
      }
      floats.emplace_back(values.values.begin(), values.values.end());
      integers.emplace_back(values.values.begin(), values.values.end());
    }
    for (size_t i = 0; i < reference.size(); ++i) {
      const bool number = graph.inputs()[i].dtype == DType::kF32;
      void* const data = number ? static_cast<void*>(floats[i].data()) : integers[i].data();
      tensors.push_back({data, reference[i].shape, graph.inputs()[i].dtype});
    }
  }

  std::vector<RefTensor> reference;
  std::vector<std::vector<float>> floats;
  std::vector<std::vector<int32_t>> integers;
  std::vector<Tensor> tensors;
};

double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += std::pow(a[i] - b[i], 2);
    norm += std::pow(b[i], 2);
  }
  return std::sqrt(error / norm);
}

// Compares the gradients of each step with the reference's: fp32 differs by a few roundings
// relative to the whole norm.
void ExpectStepsOfTheReference(const Graph& graph) {
  const Fields fields(graph);
  std::vector<float> weights = InitialWeights(graph, 3);
  std::vector<std::vector<double>> steps;
  for (const auto& [seed, step] : {std::pair<uint64_t, uint64_t>{1, 0}, {1, 1}, {2, 1}}) {
    const ReferenceResult want =
        ReferenceStep(graph, Mode::kTrain, {weights.begin(), weights.end()}, {}, fields.reference,
                      {.seed = seed, .step = step});
    for (const int threads : {1, 2}) {
      ApplyThreadBudget(threads);
      Net net(graph, {DeviceKind::kCpu, threads, CpuIsa()});
      NetInput input;
      input.fields = fields.tensors;
      input.samples = input.global_samples = input.global_terms = kDroppedSamples;
      input.seed = seed;
      input.step = step;
      std::vector<float> gradients(weights.size());
      const double loss =
          net.Step(weights.data(), gradients.data(), nullptr, input, nullptr).loss_sum;
      EXPECT_NEAR(loss, want.loss_sum, 2e-6 * want.loss_sum) << "step " << step;
      EXPECT_LT(Distance({gradients.begin(), gradients.end()}, want.gradients), 3e-6)
          << "seed " << seed << ", step " << step << ", threads " << threads;
    }
    for (const std::vector<double>& other : steps) {
      EXPECT_GT(Distance(want.gradients, other), 0.1) << "another mask is another gradient";
    }
    steps.push_back(want.gradients);
  }
  ApplyThreadBudget(1);
}

TEST(ConfiguredDropout, Seq2SeqTrainsByTheReference) {
  std::string text = ShippedModel("seq2seq_attention");
  Replace(text, "classes: 7853", "classes: 19");
  Replace(text, "classes: 5893", "classes: 17");
  Replace(text, "shape: [17]", "shape: [6]");
  Replace(text, "outputs: 256", "outputs: 12");
  Replace(text, "outputs: 512", "outputs: 10");
  Replace(text, "hidden: 512", "hidden: 10");
  Replace(text, "embedding: 256", "embedding: 12");
  Replace(text, "value: 0.01", "value: 0.4");
  ASSERT_NE(text.find("ratio: 0.5"), std::string::npos);
  ASSERT_NE(text.find("dropout: 0.5, teacher_forcing: 0.5"), std::string::npos);
  ExpectStepsOfTheReference(Graph::FromText(text, "m.yaml", {}));
}

TEST(ConfiguredDropout, VggsClassifierTrainsByTheReference) {
  std::string text = ShippedModel("vgg19_gssp");
  text = "name: classifier\nlayers:\n" + text.substr(text.find("  - {name: flatten"));
  Replace(text, "outputs: 4096", "outputs: 40");
  Replace(text, "value: 0.01", "value: 0.3");
  ASSERT_NE(text.find("type: dropout"), std::string::npos);
  ExpectStepsOfTheReference(Graph::FromText(
      text, "m.yaml", {{"data", DType::kF32, {8, 2, 2}}, {"label", DType::kI32, {}, 10}}));
}

}  // namespace
}  // namespace dtrain
