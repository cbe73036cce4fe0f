#include "layers/activations/activations.h"

namespace dtrain {

Cost ActivationLayer::CostOf(std::span<const Shape> inputs) const {
  const auto elements = static_cast<double>(inputs[0].count());
  return {of_element_.forward_flops * elements, of_element_.backward_flops * elements};
}

bool ActivationLayer::keeps_input() const {
  const ActivationKind kind = function_.kind;
  return kind == ActivationKind::kSilu || kind == ActivationKind::kGelu ||
         kind == ActivationKind::kTanhGelu;
}

namespace {

// A layer without keys, and the flops of an element's passes.
template <ActivationKind kind, int forward, int backward>
class Keyless : public ActivationLayer {
 public:
  Keyless() { Set({kind}, {forward, backward}); }
};

using Relu = Keyless<ActivationKind::kRelu, 1, 1>;
DTRAIN_LAYER("relu", Relu, "max(0, x)");

using Sigmoid = Keyless<ActivationKind::kSigmoid, 20, 3>;
DTRAIN_LAYER("sigmoid", Sigmoid, "logistic function 1 / (1 + exp(-x))");

using Tanh = Keyless<ActivationKind::kTanh, 20, 3>;
DTRAIN_LAYER("tanh", Tanh, "hyperbolic tangent");

using Silu = Keyless<ActivationKind::kSilu, 21, 25>;
DTRAIN_LAYER("silu", Silu, "x sigmoid(x), also called swish");

class LeakyRelu : public ActivationLayer {
 public:
  void Configure(config::Reader& reader) override {
    const double slope =
        reader.Number("slope", 0.01).Min(0).Max(1e6).Help("factor of numbers below 0");
    Set({ActivationKind::kLeakyRelu, static_cast<float>(slope)}, {2, 2});
  }
};

DTRAIN_LAYER("leaky_relu", LeakyRelu, "x above 0, slope x below");

class Gelu : public ActivationLayer {
 public:
  void Configure(config::Reader& reader) override {
    const std::string approximate =
        reader.String("approximate", "none")
            .OneOf({"none", "tanh"})
            .Help("none: the exact formula with erf; tanh: the approximation with tanh");
    if (approximate == "tanh") {
      Set({ActivationKind::kTanhGelu}, {25, 32});
    } else {
      Set({ActivationKind::kGelu}, {42, 46});
    }
  }
};

DTRAIN_LAYER("gelu", Gelu, "x times the standard normal distribution function of x");

}  // namespace
}  // namespace dtrain
