// Tests the tails of activations, which the layer suite's inputs between -1 and 1 do not reach.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <vector>

#include "layers/activations/activations_loops.h"
#include "tests/support/layer_run.h"

namespace dtrain {
namespace {

struct Activation {
  std::string type, keys;
  std::function<double(double)> function, derivative;
};

double Logistic(double x) { return 1 / (1 + std::exp(-x)); }
double Normal(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }
double TanhShare(double x) { return Logistic(1.5957691216057308 * (x + 0.044715 * x * x * x)); }

std::vector<Activation> Activations() {
  return {{"sigmoid", "{}", Logistic, [](double x) { return Logistic(x) * Logistic(-x); }},
          {"silu", "{}", [](double x) { return x * Logistic(x); },
           [](double x) { return Logistic(x) * (1 + x * Logistic(-x)); }},
          {"gelu", "{}", [](double x) { return x * Normal(x); },
           [](double x) { return Normal(x) + x * std::exp(-x * x / 2) * 0.3989422804014327; }},
          {"gelu", "{approximate: tanh}", [](double x) { return x * TanhShare(x); },
           [](double x) {
             const double s = TanhShare(x);
             return s + x * s * TanhShare(-x) * 1.5957691216057308 * (1 + 3 * 0.044715 * x * x);
           }},
          {"leaky_relu", "{slope: 0.3}", [](double x) { return x > 0 ? x : 0.3f * x; },
           [](double x) { return x > 0 ? 1 : 0.3f; }}};
}

LayerRun Compute(const Activation& activation, const std::vector<float>& x) {
  LayerRun run(activation.type, activation.keys, {{1, static_cast<int64_t>(x.size())}}, {0});
  run.inputs[0].values = x;
  run.inputs[0].tensor.data = run.inputs[0].values.data();
  std::fill(run.output_gradients[0].values.begin(), run.output_gradients[0].values.end(), 1.0f);
  run.Forward();
  run.Backward();
  return run;
}

TEST(Activations, FollowTheirFormulasFarFromZero) {
  std::vector<float> x;
  for (int i = -40'000; i <= 40'000; ++i) x.push_back(static_cast<float>(i) / 1000);
  for (const Activation& activation : Activations()) {
    LayerRun run = Compute(activation, x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double y = activation.function(x[i]), slope = activation.derivative(x[i]);
      ASSERT_NEAR(run.outputs[0].values[i], y, 4e-7 * (1 + std::abs(y)))
          << activation.type << activation.keys << " of " << x[i];
      ASSERT_NEAR(run.input_gradients[0].values[i], slope, 2e-6)
          << activation.type << activation.keys << ", gradient at " << x[i];
    }
  }
}

TEST(Activations, LargeNumbersGiveNoNan) {
  const std::vector<float> x = {-1e18f, -1e4f, -100, 0, 100, 1e4f, 1e18f};
  for (const Activation& activation : Activations()) {
    LayerRun run = Compute(activation, x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double y = activation.function(x[i]);
      EXPECT_NEAR(run.outputs[0].values[i], y, 1e-6 * (1 + std::abs(y)))
          << activation.type << activation.keys << " of " << x[i];
      EXPECT_TRUE(std::isfinite(run.input_gradients[0].values[i]))
          << activation.type << activation.keys << " of " << x[i];
    }
  }
}

// No product and sum are fused, and every lane does the same operations.
TEST(Activations, BitsDoNotDependOnTheInstructionSet) {
  std::vector<float> x(1001), first, y(x.size()), first_gradient, dx(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 100 - 5;
  for (int kind = 0; kind <= static_cast<int>(ActivationKind::kTanhGelu); ++kind) {
    const ActivationFunction function = {static_cast<ActivationKind>(kind), 0.3f};
    for (int isa = 0; isa <= static_cast<int>(CpuIsa()); ++isa) {
      const auto forward = DTRAIN_ISA_SELECT(static_cast<Isa>(isa), ActivationForward);
      const auto backward = DTRAIN_ISA_SELECT(static_cast<Isa>(isa), ActivationBackward);
      forward(function, x.data(), 1001, y.data());
      backward(function, x.data(), x.data(), 1001, dx.data());
      if (isa == 0) first = y;
      if (isa == 0) first_gradient = dx;
      EXPECT_EQ(y, first) << kind << " on " << IsaName(static_cast<Isa>(isa));
      EXPECT_EQ(dx, first_gradient) << kind << " on " << IsaName(static_cast<Isa>(isa));
    }
  }
}

TEST(Activations, ANanStaysANan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Activation& activation : Activations()) {
    LayerRun run = Compute(activation, std::vector<float>(37, nan));
    for (const float y : run.outputs[0].values) EXPECT_TRUE(std::isnan(y)) << activation.type;
  }
}

}  // namespace
}  // namespace dtrain
