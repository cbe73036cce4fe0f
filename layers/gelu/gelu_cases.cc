// Implements GELU in plain loops, as the reference for the tests.
#include <cmath>
#include <numbers>

#include "framework/nn/layer_case.h"
#include "layers/gelu/gelu.h"

namespace dtrain {
namespace {

class GeluReference : public LayerReference {
 public:
  void Forward(const Layer& layer, RefArgs& args) const override {
    const auto& x = args.inputs[0].values;
    for (size_t i = 0; i < x.size(); ++i) args.outputs[0].values[i] = x[i] * Share(layer, x[i]);
  }

  void Backward(const Layer& layer, RefArgs& args) const override {
    const auto& x = args.inputs[0].values;
    for (size_t i = 0; i < x.size(); ++i) {
      const double slope = Share(layer, x[i]) + x[i] * Derivative(layer, x[i]);
      args.input_gradients[0].values[i] = args.output_gradients[0].values[i] * slope;
    }
  }

 private:
  // Returns the factor of x: P, or s with `approximate: tanh`.
  static double Share(const Layer& layer, double x) {
    if (!static_cast<const Gelu&>(layer).by_tanh()) return std::erfc(-x / std::numbers::sqrt2) / 2;
    return (1 + std::tanh(kRoot * (x + 0.044715 * x * x * x))) / 2;
  }
  static double Derivative(const Layer& layer, double x) {
    if (!static_cast<const Gelu&>(layer).by_tanh()) return std::exp(-x * x / 2) * kRoot / 2;
    const double t = std::tanh(kRoot * (x + 0.044715 * x * x * x));
    return (1 - t * t) / 2 * kRoot * (1 + 3 * 0.044715 * x * x);
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
