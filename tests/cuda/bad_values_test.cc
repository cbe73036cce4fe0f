// Tests what the module's kernels do with invalid labels and tokens, and with NaN or infinite
// scores: the host does not check them before they reach the GPU, so the results must show the
// error.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/nn/layer_harness.h"

namespace dtrain {
namespace {

KernelResult Compute(const std::string& type, const CaseSetup& setup, const RefArgs& args) {
  return RunKernel(setup, VariantsOf(type, setup, Mode::kTrain).at(0), args);
}

// Returns row `row` of a matrix with this many columns.
std::vector<float> RowOf(const std::vector<float>& values, size_t row, size_t columns) {
  return {values.begin() + static_cast<std::ptrdiff_t>(row * columns),
          values.begin() + static_cast<std::ptrdiff_t>((row + 1) * columns)};
}

bool AllNan(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isnan(v); });
}

constexpr double kNone[] = {-1, 10, 1e9};  // invalid for ten classes or tokens

TEST(BadValues, ALabelThatIsNoClassMakesLossAndGradientsNan) {
  const CaseSetup setup("softmax_cross_entropy",
                        {.name = "", .yaml = "{}", .inputs = {{3, 10}, {3}}, .label_classes = 10});
  const RefArgs good = setup.Forward(Mode::kTrain);
  const KernelResult want = Compute("softmax_cross_entropy", setup, good);
  for (const double label : kNone) {
    RefArgs args = good;
    args.inputs[1].values[1] = label;
    const KernelResult got = Compute("softmax_cross_entropy", setup, args);
    EXPECT_TRUE(std::isnan(got.outputs[0][1]));
    EXPECT_TRUE(AllNan(RowOf(got.input_gradients[0], 1, 10)));
    for (const size_t row : {0, 2}) {
      EXPECT_EQ(got.outputs[0][row], want.outputs[0][row]);
      EXPECT_EQ(RowOf(got.input_gradients[0], row, 10), RowOf(want.input_gradients[0], row, 10));
    }
  }
}

TEST(BadValues, ATargetThatIsNoClassOrProbabilityMakesLossAndGradientsNan) {
  for (const char* type : {"mean_squared_error", "binary_cross_entropy"}) {
    const CaseSetup setup(
        type, {.name = "", .yaml = "{}", .inputs = {{3, 10}, {3}}, .label_classes = 10});
    for (const double label : kNone) {
      RefArgs args = setup.Forward(Mode::kTrain);
      args.inputs[1].values[1] = label;
      const KernelResult got = Compute(type, setup, args);
      EXPECT_TRUE(std::isnan(got.outputs[0][1])) << type;
      EXPECT_TRUE(AllNan(RowOf(got.input_gradients[0], 1, 10))) << type;
      for (const size_t row : {0, 2}) EXPECT_TRUE(std::isfinite(got.outputs[0][row])) << type;
    }
  }
  const CaseSetup setup("binary_cross_entropy",
                        {.name = "", .yaml = "{}", .inputs = {{2, 1}, {2}}});
  RefArgs args = setup.Forward(Mode::kTrain);
  args.inputs[1].values[1] = 1.5;
  const KernelResult got = Compute("binary_cross_entropy", setup, args);
  EXPECT_TRUE(std::isfinite(got.outputs[0][0]));
  EXPECT_TRUE(std::isnan(got.outputs[0][1]));
}

TEST(BadValues, AScoreThatIsNoNumberShowsInTheLoss) {
  const CaseSetup setup("softmax_cross_entropy",
                        {.name = "", .yaml = "{}", .inputs = {{2, 10}, {2}}, .label_classes = 10});
  for (const double score :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    RefArgs args = setup.Forward(Mode::kTrain);
    args.inputs[0].values[13] = score;
    const KernelResult got = Compute("softmax_cross_entropy", setup, args);
    EXPECT_TRUE(std::isfinite(got.outputs[0][0]));
    EXPECT_FALSE(std::isfinite(got.outputs[0][1]));
  }
}

// A row beyond 64 classes is summed by a block.
TEST(BadValues, AScoreThatIsNoNumberShowsInALongRow) {
  constexpr int kClasses = 100;
  const double infinity = std::numeric_limits<double>::infinity(), nan = NAN;
  for (const char* yaml : {"{}", "{label_smoothing: 0.1}"}) {
    const CaseSetup setup(
        "softmax_cross_entropy",
        {.name = "", .yaml = yaml, .inputs = {{3, kClasses}, {3}}, .label_classes = kClasses});
    const auto expect_nan = [&](const std::vector<int>& at, double score) {
      RefArgs args = setup.Forward(Mode::kTrain);
      for (const int c : at) args.inputs[0].values[kClasses + c] = score;
      const KernelResult got = Compute("softmax_cross_entropy", setup, args);
      EXPECT_TRUE(std::isnan(got.outputs[0][1])) << yaml << score << " at " << at[0];
      EXPECT_TRUE(AllNan(RowOf(got.input_gradients[0], 1, kClasses))) << score << " at " << at[0];
      for (const size_t row : {0, 2}) EXPECT_TRUE(std::isfinite(got.outputs[0][row]));
    };
    for (const int at : {0, 50, kClasses - 1}) {
      expect_nan({at}, nan);
      expect_nan({at}, infinity);
    }
    std::vector<int> all(kClasses);
    std::iota(all.begin(), all.end(), 0);
    expect_nan(all, -infinity);
    expect_nan(all, nan);
  }
}

TEST(BadValues, AnIgnoredLabelNeedBeNoClass) {
  const CaseSetup setup(
      "softmax_cross_entropy",
      {.name = "", .yaml = "{ignore: 10}", .inputs = {{2, 10}, {2}}, .label_classes = 10});
  RefArgs args = setup.Forward(Mode::kTrain);
  args.inputs[1].values[0] = 10;
  const KernelResult got = Compute("softmax_cross_entropy", setup, args);
  EXPECT_EQ(got.outputs[0][0], 0);
  EXPECT_EQ(RowOf(got.input_gradients[0], 0, 10), std::vector<float>(10));
  EXPECT_GT(got.outputs[0][1], 0);
}

TEST(BadValues, WithoutAClassOrWithANanASampleIsWrong) {
  const CaseSetup setup(
      "accuracy",
      {.name = "", .yaml = "{top_k: 10}", .inputs = {{4, 10}, {4}}, .label_classes = 10});
  RefArgs args = setup.Forward(Mode::kTrain);
  args.inputs[1].values[0] = -1;
  args.inputs[1].values[1] = 10;
  args.inputs[0].values[25] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Compute("accuracy", setup, args).outputs[0], (std::vector<float>{0, 0, 0, 1}));
}

TEST(BadValues, WhatIsNoTokenHasNoVectorAndNoGradient) {
  const CaseSetup setup(
      "embedding", {.name = "", .yaml = "{outputs: 6}", .inputs = {{2, 4}}, .input_classes = {10}});
  const RefArgs good = setup.Forward(Mode::kTrain);
  RefArgs silent = good;  // the gradient without the place in question
  for (size_t j = 18; j < 24; ++j) silent.output_gradients[0].values[j] = 0;
  const KernelResult want = Compute("embedding", setup, silent);
  for (const double token : kNone) {
    RefArgs args = good;
    args.inputs[0].values[3] = token;
    const KernelResult got = Compute("embedding", setup, args);
    EXPECT_TRUE(AllNan(RowOf(got.outputs[0], 3, 6)));
    EXPECT_EQ(RowOf(got.outputs[0], 2, 6), RowOf(want.outputs[0], 2, 6));
    EXPECT_EQ(got.param_gradients, want.param_gradients);
  }
}

}  // namespace
}  // namespace dtrain
