// Exports layer normalisation as ONNX operators.
#include "framework/onnx/onnx_layer.h"
#include "layers/layer_norm/layer_norm.h"

namespace dtrain {
namespace {

// Returns a weight of ones, for a layer without parameters.
std::string Ones(const OnnxLayer& to) {
  const Shape& shape = to.As<LayerNorm>().param_shape();
  const auto count = static_cast<size_t>(shape.count());
  return to.Constant("ones", shape.extents(), std::vector<float>(count, 1));
}

void TranslateLayerNorm(OnnxLayer& to) {
  const auto& layer = to.As<LayerNorm>();
  std::vector<std::string> inputs = {to.input(0), layer.affine() ? to.Param(0) : Ones(to)};
  if (layer.affine()) inputs.push_back(to.Param(1));
  to.Result("LayerNormalization", std::move(inputs),
            {{"axis", -layer.axes()}, {"epsilon", static_cast<float>(layer.eps())}});
}

DTRAIN_ONNX("layer_norm", TranslateLayerNorm);

}  // namespace
}  // namespace dtrain
