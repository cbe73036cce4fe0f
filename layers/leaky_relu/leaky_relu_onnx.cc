// Exports leaky ReLU as ONNX operators.
#include "framework/onnx/onnx_layer.h"
#include "layers/leaky_relu/leaky_relu.h"

namespace dtrain {
namespace {

void Translate(OnnxLayer& to) {
  to.Result("LeakyRelu", {to.input(0)}, {{"alpha", to.As<LeakyRelu>().slope()}});
}

DTRAIN_ONNX("leaky_relu", Translate);

}  // namespace
}  // namespace dtrain
