// Layer normalisation in ONNX's operators.
#include "framework/onnx/onnx_layer.h"
#include "layers/layer_norm/layer_norm.h"

namespace dtrain {
namespace {

// The factors of a layer without them.
std::string Ones(const OnnxLayer& to) {
  const Shape& x = to.shape(0);
  std::vector<int64_t> extents;
  for (auto axis = x.rank() - static_cast<int>(to.As<LayerNorm>().axes()); axis < x.rank();
       ++axis) {
    extents.push_back(x[axis]);
  }
  const auto count = static_cast<size_t>(Shape(extents).count());
  return to.Constant("ones", extents, std::vector<float>(count, 1));
}

void Translate(OnnxLayer& to) {
  const auto& layer = to.As<LayerNorm>();
  std::vector<std::string> inputs = {to.input(0), layer.affine() ? to.Param(0) : Ones(to)};
  if (layer.affine()) inputs.push_back(to.Param(1));
  to.Result("LayerNormalization", std::move(inputs),
            {{"axis", -layer.axes()}, {"epsilon", static_cast<float>(layer.eps())}});
}

DTRAIN_ONNX("layer_norm", Translate);

}  // namespace
}  // namespace dtrain
