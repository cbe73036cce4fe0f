// Implements the activations in plain loops, as the reference for the tests.
#include <cmath>
#include <numbers>

#include "framework/nn/layer_case.h"
#include "layers/activations/activations.h"

namespace dtrain {
namespace {

class ActivationReference : public LayerReference {
 public:
  void Forward(const Layer& layer, RefArgs& args) const override {
    const ActivationFunction& f = static_cast<const ActivationLayer&>(layer).function();
    const auto& x = args.inputs[0].values;
    for (size_t i = 0; i < x.size(); ++i) args.outputs[0].values[i] = Value(f, x[i]);
  }

  void Backward(const Layer& layer, RefArgs& args) const override {
    const ActivationFunction& f = static_cast<const ActivationLayer&>(layer).function();
    const auto& x = args.inputs[0].values;
    for (size_t i = 0; i < x.size(); ++i) {
      args.input_gradients[0].values[i] = args.output_gradients[0].values[i] * Derivative(f, x[i]);
    }
  }

 private:
  virtual double Value(const ActivationFunction& f, double x) const = 0;
  virtual double Derivative(const ActivationFunction& f, double x) const = 0;
};

double LogisticOf(double x) { return 1 / (1 + std::exp(-x)); }

std::vector<LayerCase> UsualCases() {
  return {{"one number", "{}", {{1, 1}}},
          {"vector", "{}", {{4, 10}}},
          {"image", "{}", {{3, 5, 7, 6}}},
          {"two blocks of samples", "{}", {{18, 3, 4, 4}}},
          {"long", "{}", {{2, 40000}}, 0, false}};
}

class ReluReference : public ActivationReference {
  double Value(const ActivationFunction&, double x) const override { return x > 0 ? x : 0; }
  double Derivative(const ActivationFunction&, double x) const override { return x > 0 ? 1 : 0; }
};

DTRAIN_LAYER_CASES("relu", ReluReference, UsualCases());

class LeakyReluReference : public ActivationReference {
  double Value(const ActivationFunction& f, double x) const override {
    return x > 0 ? x : f.slope * x;
  }
  double Derivative(const ActivationFunction& f, double x) const override {
    return x > 0 ? 1 : f.slope;
  }
};

DTRAIN_LAYER_CASES("leaky_relu", LeakyReluReference,
                   {{"one number", "{}", {{1, 1}}},
                    {"vector", "{}", {{4, 10}}},
                    {"a fifth of an image", "{slope: 0.2}", {{3, 5, 7, 6}}},
                    {"steeper below", "{slope: 3}", {{18, 3, 4, 4}}},
                    {"nothing below", "{slope: 0}", {{5, 9}}},
                    {"long", "{}", {{2, 40000}}, 0, false}});

class SigmoidReference : public ActivationReference {
  double Value(const ActivationFunction&, double x) const override { return LogisticOf(x); }
  double Derivative(const ActivationFunction&, double x) const override {
    return LogisticOf(x) * (1 - LogisticOf(x));
  }
};

DTRAIN_LAYER_CASES("sigmoid", SigmoidReference, UsualCases());

class TanhReference : public ActivationReference {
  double Value(const ActivationFunction&, double x) const override { return std::tanh(x); }
  double Derivative(const ActivationFunction&, double x) const override {
    return 1 - std::tanh(x) * std::tanh(x);
  }
};

DTRAIN_LAYER_CASES("tanh", TanhReference, UsualCases());

class SiluReference : public ActivationReference {
  double Value(const ActivationFunction&, double x) const override { return x * LogisticOf(x); }
  double Derivative(const ActivationFunction&, double x) const override {
    return LogisticOf(x) * (1 + x * (1 - LogisticOf(x)));
  }
};

DTRAIN_LAYER_CASES("silu", SiluReference, UsualCases());

class GeluReference : public ActivationReference {
  double Value(const ActivationFunction& f, double x) const override { return x * Share(f, x); }
  double Derivative(const ActivationFunction& f, double x) const override {
    if (f.kind == ActivationKind::kGelu) {
      return Share(f, x) + x * std::exp(-x * x / 2) * kRoot / 2;
    }
    const double t = std::tanh(kRoot * (x + 0.044715 * x * x * x));
    return Share(f, x) + x * (1 - t * t) / 2 * kRoot * (1 + 3 * 0.044715 * x * x);
  }

  // Returns the factor of x: P, or t with `approximate: tanh`.
  static double Share(const ActivationFunction& f, double x) {
    if (f.kind == ActivationKind::kGelu) return std::erfc(-x / std::numbers::sqrt2) / 2;
    return (1 + std::tanh(kRoot * (x + 0.044715 * x * x * x))) / 2;
  }

  static constexpr double kRoot = 0.7978845608028654;  // sqrt(2 / pi)
};

DTRAIN_LAYER_CASES("gelu", GeluReference,
                   {{"one number", "{}", {{1, 1}}},
                    {"vector", "{}", {{4, 10}}},
                    {"image", "{}", {{3, 5, 7, 6}}},
                    {"two blocks of samples", "{approximate: none}", {{18, 3, 4, 4}}},
                    {"long", "{}", {{2, 40000}}, 0, false},
                    {"tanh, vector", "{approximate: tanh}", {{4, 10}}},
                    {"tanh, image", "{approximate: tanh}", {{3, 5, 7, 6}}},
                    {"tanh, long", "{approximate: tanh}", {{2, 40000}}, 0, false}});

}  // namespace
}  // namespace dtrain
