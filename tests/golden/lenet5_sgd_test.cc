// Ten SGD steps of LeNet-5 from PyTorch's weights and batches give the same losses and final
// weights as PyTorch.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "framework/device/buffer.h"
#include "framework/nn/graph.h"
#include "framework/nn/net.h"
#include "framework/solver/solver.h"
#include "tests/golden/golden_file.h"

namespace dtrain {
namespace {

constexpr char kSolver[] = "solver: {name: sgd, lr: 0.01, momentum: 0.9, weight_decay: 0.0005}";

const nlohmann::json& Golden() {
  static const nlohmann::json json = golden::File("lenet5_sgd.json");
  return json;
}

SolverConfig ReadSolver() {
  config::Document document = config::Document::FromText(kSolver, "golden");
  SolverConfig config = ReadSolverConfig(document.root().Section("solver"));
  document.Finish();
  return config;
}

// Trains LeNet-5 from the golden weights, step by step.
class GoldenRun {
 public:
  explicit GoldenRun(int threads)
      : graph_(Graph::FromFile(
            (golden::kSource / "configs" / "models" / "lenet5.yaml").string(),
            {{"data", DType::kF32, Shape{1, 28, 28}}, {"label", DType::kI32, Shape{}}})),
        net_(graph_, Device{DeviceKind::kCpu, threads, CpuIsa()}),
        solver_(ReadSolver()),
        weights_(graph_.weights().size()),
        gradients_(weights_.size()),
        momentum_(weights_.size()) {
    for (const ArenaEntry& entry : graph_.weights().entries) {
      EXPECT_TRUE(golden::FillParameter(entry.name, Of(weights_, entry))) << entry.name;
    }
    net_.Prepare(Mode::kTrain, golden::kBatch);
  }

  // Returns the mean loss before the update.
  double Step(uint64_t step) {
    FillBatch(step);
    const StepResult result =
        net_.Step(weights_.data(), gradients_.data(), nullptr, Input(step), nullptr);
    float* const state[] = {momentum_.data()};
    EXPECT_TRUE(solver_.solver->Apply(graph_.weights(), {0, graph_.weights().size()},
                                      {.lr = solver_.lr,
                                       .gradient = gradients_.data(),
                                       .weights_in = weights_.data(),
                                       .weights_out = weights_.data(),
                                       .state = state}));
    return result.loss_sum / golden::kBatch;
  }

  double WeightSum(const std::string& name) {
    for (const ArenaEntry& entry : graph_.weights().entries) {
      if (entry.name != name) continue;
      double sum = 0;
      for (const float w : Of(weights_, entry)) sum += w;
      return sum;
    }
    ADD_FAILURE() << "no parameter " << name;
    return 0;
  }

 private:
  static std::span<float> Of(std::vector<float>& arena, const ArenaEntry& entry) {
    return {arena.data() + entry.range.begin, static_cast<size_t>(entry.range.size())};
  }

  void FillBatch(uint64_t step) {
    golden::FillImages(step, std::span<float, golden::kBatch * golden::kPixels>(images_));
    for (int64_t n = 0; n < golden::kBatch; ++n) labels_[n] = golden::Label(step, n);
    fields_[0] = {images_.data(), Shape{golden::kBatch, 1, 28, 28}, DType::kF32};
    fields_[1] = {labels_.data(), Shape{golden::kBatch}, DType::kI32};
  }

  NetInput Input(uint64_t step) {
    NetInput input;
    input.fields = fields_;
    input.samples = input.global_samples = golden::kBatch;
    input.step = step;
    return input;
  }

  Graph graph_;
  Net net_;
  SolverConfig solver_;
  std::vector<float> weights_, gradients_, momentum_;
  std::vector<float> images_ = std::vector<float>(golden::kBatch * golden::kPixels);
  std::vector<int32_t> labels_ = std::vector<int32_t>(golden::kBatch);
  Tensor fields_[2];
};

TEST(Golden, InputsAreThoseOfPyTorch) {
  const auto& check = Golden().at("inputs_check");
  std::vector<float> weights(150), images(golden::kBatch * golden::kPixels);
  ASSERT_TRUE(golden::FillParameter("conv1.weight", weights));
  golden::FillImages(0, std::span<float, golden::kBatch * golden::kPixels>(images));
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(weights[i], check.at("conv1.weight[0..3]")[i].get<double>());
    EXPECT_EQ(images[i], check.at("input[step 0][0..3]")[i].get<double>());
  }
  for (size_t n = 0; n < 8; ++n) {
    EXPECT_EQ(golden::Label(0, n), check.at("labels[step 0][0..7]")[n].get<int>());
  }
}

class GoldenSteps : public ::testing::TestWithParam<int> {};

TEST_P(GoldenSteps, GivePyTorchsLossesAndWeights) {
  GoldenRun run(GetParam());
  const auto& expected = Golden().at("float64");
  const std::vector<double> losses = expected.at("losses");
  for (size_t step = 0; step < losses.size(); ++step) {
    EXPECT_NEAR(run.Step(step), losses[step], 1e-5 * losses[step]) << "step " << step;
  }
  for (const auto& [name, sum] : expected.at("weight_sums_after").items()) {
    EXPECT_NEAR(run.WeightSum(name), sum.get<double>(), 1e-4) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, GoldenSteps, ::testing::Values(1, 2));

}  // namespace
}  // namespace dtrain
