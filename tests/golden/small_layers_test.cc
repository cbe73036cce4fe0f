// Activations, normalisations and losses give PyTorch's outputs and gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "framework/core/file.h"
#include "tests/support/golden_inputs.h"
#include "tests/support/layer_run.h"

namespace dtrain {
namespace {

// The streams of tools/pytorch/small_layers.py.
enum Stream { kInput = 600, kTarget = 601, kParam = 640, kOutputGradient = 660 };

const nlohmann::json& Golden() {
  static const auto json = nlohmann::json::parse(
      ReadFile(std::filesystem::path(DTRAIN_SOURCE_DIR) / "tests/golden/small_layers.json"));
  return json;
}

// scale * unit + offset
void Fill(LayerArray& array, uint64_t stream, float scale, float offset = 0) {
  for (size_t i = 0; i < array.values.size(); ++i) {
    array.values[i] = scale * golden::Unit(stream, i) + offset;
  }
}

void FillTarget(LayerArray& array, uint64_t classes) {
  if (classes == 0) return Fill(array, kTarget, 0.5f, 0.5f);
  for (size_t i = 0; i < array.values.size(); ++i) {
    array.tensor.i32()[i] = static_cast<int32_t>((golden::Bits(kTarget, i) >> 33) % classes);
  }
}

LayerRun Compute(const nlohmann::json& golden, int threads) {
  std::vector<Shape> shapes;
  for (const std::vector<int64_t> extents : golden.at("inputs")) shapes.emplace_back(extents);
  const std::vector<int64_t> classes = golden.at("classes");
  LayerRun run(golden.at("type"), golden.at("keys"), shapes, classes, {.threads = threads});
  Fill(run.inputs[0], kInput, 4);
  if (shapes.size() > 1) FillTarget(run.inputs[1], static_cast<uint64_t>(classes[1]));
  for (size_t p = 0; p < run.params.size(); ++p) Fill(run.params[p], kParam + p, 1);
  Fill(run.output_gradients[0], kOutputGradient, 1);
  run.Forward();
  run.Backward();
  return run;
}

// Of |d| / (1 + |what PyTorch has|); how far the worst element is off, and whose it is.
struct Worst {
  double difference = 0;
  std::string of;
};

void ExpectNear(const LayerArray& got, const std::vector<double>& want, const std::string& what,
                Worst& worst) {
  ASSERT_EQ(got.values.size(), want.size()) << what;
  for (size_t i = 0; i < want.size(); ++i) {
    const double difference = std::abs(got.values[i] - want[i]) / (1 + std::abs(want[i]));
    EXPECT_LE(difference, 2e-6) << what << " " << i << ": " << got.values[i] << ", " << want[i];
    if (difference > worst.difference) worst = {difference, what};
  }
}

class SmallLayersGolden : public ::testing::TestWithParam<int> {};

TEST_P(SmallLayersGolden, GivePyTorchsNumbers) {
  ASSERT_EQ(Golden().at("cases").size(), 23u);
  Worst worst;
  for (const auto& golden : Golden().at("cases")) {
    const std::string name =
        golden.at("type").get<std::string>() + " " + golden.at("keys").get<std::string>();
    LayerRun run = Compute(golden, GetParam());
    ExpectNear(run.outputs[0], golden.at("output"), name + ", output", worst);
    ExpectNear(run.input_gradients[0], golden.at("input_gradient"), name + ", input gradient",
               worst);
    const auto& params = golden.at("param_gradients");
    ASSERT_EQ(run.param_gradients.size(), params.size());
    for (size_t p = 0; p < params.size(); ++p) {
      ExpectNear(run.param_gradients[p], params[p], name + ", " + run.layer().Params()[p].name,
                 worst);
    }
  }
  RecordProperty("largest_difference", fmt::format("{:.2e}, {}", worst.difference, worst.of));
}

INSTANTIATE_TEST_SUITE_P(Threads, SmallLayersGolden, ::testing::Values(1, 2));

}  // namespace
}  // namespace dtrain
