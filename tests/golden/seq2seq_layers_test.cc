// Small recurrent layers and the attention decoder give PyTorch's outputs and gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "framework/nn/tokens.h"
#include "tests/golden/golden_file.h"

namespace dtrain {
namespace {

// These are the random streams of tools/pytorch/seq2seq_layers.py.
enum Stream { kInput = 500, kTokens = 520, kParam = 540, kOutputGradient = 560, kProjection = 580 };

void FillTokens(LayerArray& array, uint64_t stream, uint64_t classes,
                const std::vector<int64_t>& lengths) {
  const int64_t steps = array.tensor.shape[1];
  for (int64_t i = 0; i < array.tensor.shape.count(); ++i) {
    const uint64_t drawn = 2 + (golden::Bits(stream, i) >> 33) % (classes - 2);
    const bool word = i % steps < lengths[i / steps];
    array.tensor.i32()[i] = static_cast<int32_t>(word ? drawn : kPadToken);
  }
}

double Projection(const LayerArray& array) {
  double sum = 0;
  for (size_t i = 0; i < array.values.size(); ++i) {
    sum += static_cast<double>(array.values[i]) * golden::Unit(kProjection, i);
  }
  return sum;
}

LayerRun Compute(const nlohmann::json& one, int threads) {
  const std::vector<Shape> shapes = golden::InputShapes(one);
  const std::vector<int64_t> classes = one.at("classes"), lengths = one.at("lengths");
  LayerRun run(one.at("type"), one.at("keys"), shapes, classes, {.threads = threads});
  for (size_t k = 0; k < shapes.size(); ++k) {
    // A decoder's target, its fourth input, has no padding.
    const std::vector<int64_t> full(lengths.size(), shapes[k].rank() > 1 ? shapes[k][1] : 0);
    if (classes[k] == 0) golden::Fill(run.inputs[k], kInput + k, 1);
    if (classes[k] > 0) FillTokens(run.inputs[k], kTokens + k, classes[k], k == 3 ? full : lengths);
  }
  for (size_t p = 0; p < run.params.size(); ++p) golden::Fill(run.params[p], kParam + p, 0.5f);
  golden::Fill(run.output_gradients[0], kOutputGradient, 1);
  run.Forward();
  run.Backward();
  return run;
}

class Seq2SeqGolden : public ::testing::TestWithParam<int> {};

TEST_P(Seq2SeqGolden, LayersGivePyTorchsNumbers) {
  const nlohmann::json cases = golden::File("seq2seq_layers.json").at("cases");
  for (const auto& one : cases) {
    SCOPED_TRACE(one.at("type").get<std::string>() + " " + one.at("keys").get<std::string>());
    LayerRun run = Compute(one, GetParam());
    const std::vector<double> output = one.at("output");
    ASSERT_EQ(run.outputs[0].values.size(), output.size());
    for (size_t i = 0; i < output.size(); ++i) {
      EXPECT_NEAR(run.outputs[0].values[i], output[i], 1e-6 * (1 + std::abs(output[i]))) << i;
    }
    const std::vector<double> inputs = one.at("input_gradients");
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_NEAR(Projection(run.input_gradients[i]), inputs[i], 1e-5) << "input " << i;
    }
    const std::vector<double> params = one.at("param_gradients");
    ASSERT_EQ(run.param_gradients.size(), params.size());
    for (size_t p = 0; p < params.size(); ++p) {
      EXPECT_NEAR(Projection(run.param_gradients[p]), params[p], 1e-5)
          << run.layer().Params()[p].name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, Seq2SeqGolden, ::testing::Values(1, 2));

}  // namespace
}  // namespace dtrain
