// Tests a small translation model as a whole: gradients that meet in the encoder's outputs, and
// padded sentences of different lengths.
#include <gtest/gtest.h>

#include <cmath>

#include "framework/core/random.h"
#include "framework/device/cpu/threads.h"
#include "framework/nn/net.h"
#include "framework/nn/step_decoder.h"
#include "framework/nn/tokens.h"
#include "tests/nn/reference_net.h"
#include "tests/support/small_seq2seq.h"

namespace dtrain {
namespace {

constexpr int64_t kSourceWords = 13, kTargetWords = 11;

Graph Model() {
  return GraphOf({.source_length = 5,
                  .source_words = kSourceWords,
                  .target_length = 6,
                  .target_words = kTargetWords,
                  .decoder = "embedding: 4, teacher_forcing: 1"});
}

// Source and target sentences of different lengths; labels are the target shifted by one.
struct Pairs {
  Pairs(int64_t samples, int64_t source_steps, int64_t target_steps)
      : source(samples * source_steps), target(samples * target_steps), label(target.size()) {
    const Random random(2, Purpose::kSelfTest, 70);
    for (int64_t n = 0; n < samples; ++n) {
      Fill(&source[n * source_steps], 3 + n % (source_steps - 2), source_steps, random,
           kSourceWords, n * 100);
      const int64_t length = 2 + n % (target_steps - 1);
      Fill(&target[n * target_steps], length, target_steps, random, kTargetWords, n * 100 + 50);
      for (int64_t t = 0; t < target_steps; ++t) {
        const bool word = t + 1 < length;
        label[n * target_steps + t] =
            word ? target[n * target_steps + t + 1] : (t + 1 == length ? 3 : kPadToken);
        terms += t < length ? 1 : 0;
      }
    }
    fields = {{source.data(), {samples, source_steps}, DType::kI32, Format::kPlain},
              {target.data(), {samples, target_steps}, DType::kI32, Format::kPlain},
              {label.data(), {samples, target_steps}, DType::kI32, Format::kPlain}};
    input.fields = fields;
    input.samples = input.global_samples = samples;
    input.global_terms = terms;
  }

  static void Fill(int32_t* row, int64_t length, int64_t steps, const Random& random, int64_t words,
                   int64_t at) {
    for (int64_t t = 0; t < steps; ++t) {
      const auto word = static_cast<int32_t>(2 + random.Below(at + t, words - 2));
      row[t] = t < length ? word : kPadToken;
    }
  }

  std::vector<int32_t> source, target, label;
  int64_t terms = 0;
  std::vector<Tensor> fields;
  NetInput input;
};

RefTensor AsReference(const Tensor& tensor) {
  RefTensor reference{tensor.shape, {}};
  for (int64_t i = 0; i < tensor.shape.count(); ++i) reference.values.push_back(tensor.i32()[i]);
  return reference;
}

// Whatever layers are frozen, the other gradients stay the same, though kernels then compute
// gradients of some inputs only.
TEST(Seq2SeqNet, WithFrozenLayersTheOthersHaveTheSameGradients) {
  const auto step = [](const Graph& graph) {
    const std::vector<float> weights = InitialWeights(graph, 3);
    std::vector<float> gradients(weights.size(), std::nanf(""));
    Pairs pairs(7, 5, 6);
    Net net(graph, {DeviceKind::kCpu, 1, CpuIsa()});
    net.Step(weights.data(), gradients.data(), nullptr, pairs.input, nullptr);
    return gradients;
  };
  const std::vector<float> all = step(Model());
  for (const std::vector<std::string>& frozen : {std::vector<std::string>{"encoder.embedding"},
                                                 {"encoder.embedding", "encoder.rnn"},
                                                 {"encoder.*"},
                                                 {"encoder.fc"},
                                                 {"encoder.rnn"},
                                                 {"encoder.embedding", "decoder"},
                                                 {"decoder"}}) {
    Graph graph = Model();
    for (const std::string& pattern : frozen) ASSERT_GT(graph.Freeze(pattern), 0);
    const std::vector<float> some = step(graph);
    for (const ArenaEntry& entry : graph.weights().entries) {
      for (int64_t i = entry.range.begin; i < entry.range.end; ++i) {
        EXPECT_EQ(some[i], entry.lr_factor == 0 ? 0 : all[i]) << frozen[0] << ": " << entry.name;
      }
    }
  }
}

TEST(Seq2SeqNet, GradientsAreThoseOfTheReference) {
  const Graph graph = Model();
  const std::vector<float> weights = InitialWeights(graph, 3);
  Pairs pairs(7, 5, 6);
  pairs.input.global_terms = pairs.input.samples;  // the reference's divisor
  std::vector<RefTensor> inputs;
  for (const Tensor& field : pairs.fields) inputs.push_back(AsReference(field));
  const ReferenceResult want =
      ReferenceStep(graph, Mode::kTrain, {weights.begin(), weights.end()}, {}, inputs);
  for (const int threads : {1, 2}) {
    ApplyThreadBudget(threads);
    Net net(graph, {DeviceKind::kCpu, threads, CpuIsa()});
    std::vector<float> gradients(weights.size());
    const StepResult step =
        net.Step(weights.data(), gradients.data(), nullptr, pairs.input, nullptr);
    EXPECT_NEAR(step.loss_sum, want.loss_sum, 1e-5 * want.loss_sum);
    double error = 0, norm = 0;
    for (size_t i = 0; i < gradients.size(); ++i) {
      error += std::pow(gradients[i] - want.gradients[i], 2);
      norm += std::pow(want.gradients[i], 2);
    }
    EXPECT_LT(std::sqrt(error / norm), 2e-6) << threads;
  }
}

// The same sentences in longer rows give the same gradients to rounding, and the same loss to the
// bit.
TEST(Seq2SeqNet, MorePaddingChangesNothing) {
  const Graph graph = Model();
  const std::vector<float> weights = InitialWeights(graph, 3);
  Net net(graph, {DeviceKind::kCpu, 1, CpuIsa()});
  const Pairs tight(3, 5, 6);
  Pairs wide(3, 5, 6);
  const auto widen = [](std::vector<int32_t>& tokens, int64_t steps, int64_t more) {
    std::vector<int32_t> wider;
    for (size_t i = 0; i < tokens.size(); ++i) {
      wider.push_back(tokens[i]);
      if ((i + 1) % steps == 0) wider.insert(wider.end(), more, kPadToken);
    }
    tokens = wider;
  };
  widen(wide.source, 5, 3);
  widen(wide.target, 6, 2);
  widen(wide.label, 6, 2);
  wide.fields = {{wide.source.data(), {3, 8}, DType::kI32, Format::kPlain},
                 {wide.target.data(), {3, 8}, DType::kI32, Format::kPlain},
                 {wide.label.data(), {3, 8}, DType::kI32, Format::kPlain}};
  wide.input.fields = wide.fields;
  std::vector<float> gradients(weights.size()), wider(weights.size());
  const double loss =
      net.Step(weights.data(), gradients.data(), nullptr, tight.input, nullptr).loss_sum;
  EXPECT_EQ(net.Step(weights.data(), wider.data(), nullptr, wide.input, nullptr).loss_sum, loss);
  for (size_t i = 0; i < wider.size(); ++i) EXPECT_NEAR(wider[i], gradients[i], 1e-6);
}

// The model learns one batch by heart.
TEST(Seq2SeqNet, LearnsAFewSentences) {
  const Graph graph = Model();
  std::vector<float> weights = InitialWeights(graph, 3);
  Net net(graph, {DeviceKind::kCpu, 1, CpuIsa()});
  const Pairs pairs(3, 5, 6);
  std::vector<float> gradients(weights.size());
  double first = 0, loss = 0;
  for (int step = 0; step < 400; ++step) {
    loss = net.Step(weights.data(), gradients.data(), nullptr, pairs.input, nullptr).loss_sum;
    if (step == 0) first = loss;
    for (size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.7f * gradients[i];
  }
  EXPECT_LT(loss, first / 10);
}

}  // namespace
}  // namespace dtrain
