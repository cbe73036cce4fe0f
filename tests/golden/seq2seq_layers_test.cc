// Small recurrent layers and the attention decoder give PyTorch's outputs and gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "framework/core/file.h"
#include "framework/nn/tokens.h"
#include "tests/support/golden_inputs.h"
#include "tests/support/layer_run.h"

namespace dtrain {
namespace {

// The streams of tools/pytorch/seq2seq_layers.py.
enum Stream { kInput = 500, kTokens = 520, kParam = 540, kOutputGradient = 560, kProjection = 580 };

const nlohmann::json& GoldenLayers() {
  static const auto json = nlohmann::json::parse(
      ReadFile(std::filesystem::path(DTRAIN_SOURCE_DIR) / "tests/golden/seq2seq_layers.json"));
  return json;
}

void Fill(LayerArray& array, uint64_t stream, float scale) {
  for (size_t i = 0; i < array.values.size(); ++i)
    array.values[i] = scale * golden::Unit(stream, i);
}

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

LayerRun Compute(const nlohmann::json& golden, int threads) {
  std::vector<Shape> shapes;
  for (const std::vector<int64_t> extents : golden.at("inputs")) shapes.emplace_back(extents);
  const std::vector<int64_t> classes = golden.at("classes"), lengths = golden.at("lengths");
  LayerRun run(golden.at("type"), golden.at("keys"), shapes, classes, {.threads = threads});
  for (size_t k = 0; k < shapes.size(); ++k) {
    // A decoder's target, its fourth input, is full.
    const std::vector<int64_t> full(lengths.size(), shapes[k].rank() > 1 ? shapes[k][1] : 0);
    if (classes[k] == 0) Fill(run.inputs[k], kInput + k, 1);
    if (classes[k] > 0) FillTokens(run.inputs[k], kTokens + k, classes[k], k == 3 ? full : lengths);
  }
  for (size_t p = 0; p < run.params.size(); ++p) Fill(run.params[p], kParam + p, 0.5f);
  Fill(run.output_gradients[0], kOutputGradient, 1);
  run.Forward();
  run.Backward();
  return run;
}

class Seq2SeqGolden : public ::testing::TestWithParam<int> {};

TEST_P(Seq2SeqGolden, LayersGivePyTorchsNumbers) {
  for (const auto& golden : GoldenLayers().at("cases")) {
    SCOPED_TRACE(golden.at("type").get<std::string>() + " " + golden.at("keys").get<std::string>());
    LayerRun run = Compute(golden, GetParam());
    const std::vector<double> output = golden.at("output");
    ASSERT_EQ(run.outputs[0].values.size(), output.size());
    for (size_t i = 0; i < output.size(); ++i) {
      EXPECT_NEAR(run.outputs[0].values[i], output[i], 1e-6 * (1 + std::abs(output[i]))) << i;
    }
    const std::vector<double> inputs = golden.at("input_gradients");
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_NEAR(Projection(run.input_gradients[i]), inputs[i], 1e-5) << "input " << i;
    }
    const std::vector<double> params = golden.at("param_gradients");
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
