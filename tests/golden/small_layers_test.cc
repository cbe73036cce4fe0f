// Activations, normalisations and losses give PyTorch's outputs and gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/golden/golden_file.h"

namespace dtrain {
namespace {

// These are the random streams of tools/pytorch/small_layers.py.
enum Stream { kInput = 600, kTarget = 601, kParam = 640, kOutputGradient = 660 };

void FillTarget(LayerArray& array, uint64_t classes) {
  if (classes == 0) return golden::Fill(array, kTarget, 0.5f, 0.5f);
  for (size_t i = 0; i < array.values.size(); ++i) {
    array.tensor.i32()[i] = static_cast<int32_t>((golden::Bits(kTarget, i) >> 33) % classes);
  }
}

LayerRun Compute(const nlohmann::json& one, int threads) {
  const std::vector<Shape> shapes = golden::InputShapes(one);
  const std::vector<int64_t> classes = one.at("classes");
  LayerRun run(one.at("type"), one.at("keys"), shapes, classes, {.threads = threads});
  golden::Fill(run.inputs[0], kInput, 4);
  if (shapes.size() > 1) FillTarget(run.inputs[1], static_cast<uint64_t>(classes[1]));
  for (size_t p = 0; p < run.params.size(); ++p) golden::Fill(run.params[p], kParam + p, 1);
  golden::Fill(run.output_gradients[0], kOutputGradient, 1);
  run.Forward();
  run.Backward();
  return run;
}

// The largest error |d| / (1 + |PyTorch's value|) of any element, and the array that has it.
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
  const nlohmann::json cases = golden::File("small_layers.json").at("cases");
  ASSERT_EQ(cases.size(), 23u);
  Worst worst;
  for (const auto& one : cases) {
    const std::string name =
        one.at("type").get<std::string>() + " " + one.at("keys").get<std::string>();
    LayerRun run = Compute(one, GetParam());
    ExpectNear(run.outputs[0], one.at("output"), name + ", output", worst);
    ExpectNear(run.input_gradients[0], one.at("input_gradient"), name + ", input gradient", worst);
    const auto& params = one.at("param_gradients");
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
