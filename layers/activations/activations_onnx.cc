// Exports the activations as ONNX operators.  This opset version has no SiLU and no Gelu.
#include <cmath>
#include <numbers>

#include "framework/onnx/onnx_layer.h"
#include "layers/activations/activations.h"

namespace dtrain {
namespace {

void TranslateRelu(OnnxLayer& to) { to.Result("Relu", {to.input(0)}); }
DTRAIN_ONNX("relu", TranslateRelu);

void TranslateLeakyRelu(OnnxLayer& to) {
  to.Result("LeakyRelu", {to.input(0)}, {{"alpha", to.As<ActivationLayer>().function().slope}});
}
DTRAIN_ONNX("leaky_relu", TranslateLeakyRelu);

void TranslateSigmoid(OnnxLayer& to) { to.Result("Sigmoid", {to.input(0)}); }
DTRAIN_ONNX("sigmoid", TranslateSigmoid);

void TranslateTanh(OnnxLayer& to) { to.Result("Tanh", {to.input(0)}); }
DTRAIN_ONNX("tanh", TranslateTanh);

void TranslateSilu(OnnxLayer& to) {
  to.Result("Mul", {to.input(0), to.Node("Sigmoid", {to.input(0)})});
}
DTRAIN_ONNX("silu", TranslateSilu);

// Returns z = sqrt(2 / pi) (x + 0.044715 x^3) = x (a + b x^2).
std::string ArgumentOfTanh(const OnnxLayer& to) {
  const double a = std::sqrt(2 / std::numbers::pi);
  const std::string& x = to.input(0);
  const std::string square = to.Node("Mul", {x, x});
  const std::string cubic =
      to.Node("Mul", {square, to.Scalar("cubic", static_cast<float>(0.044715 * a))});
  const std::string factor = to.Node("Add", {cubic, to.Scalar("linear", static_cast<float>(a))});
  return to.Node("Mul", {x, factor});
}

// The output is x (1 + f) / 2, where f = erf(x / sqrt 2), or tanh(z) with `approximate: tanh`.
void TranslateGelu(OnnxLayer& to) {
  const auto root_half = static_cast<float>(std::numbers::sqrt2 / 2);
  const std::string f =
      to.As<ActivationLayer>().function().kind == ActivationKind::kTanhGelu
          ? to.Node("Tanh", {ArgumentOfTanh(to)})
          : to.Node("Erf", {to.Node("Mul", {to.input(0), to.Scalar("root_half", root_half)})});
  const std::string twice = to.Node("Add", {f, to.Scalar("one", 1)});
  const std::string half = to.Node("Mul", {to.input(0), to.Scalar("half", 0.5F)});
  to.Result("Mul", {half, twice});
}
DTRAIN_ONNX("gelu", TranslateGelu);

}  // namespace
}  // namespace dtrain
