// Exports SiLU as Mul and Sigmoid, since this opset version has no SiLU.
#include "framework/onnx/onnx_layer.h"

namespace dtrain {
namespace {

void Translate(OnnxLayer& to) {
  to.Result("Mul", {to.input(0), to.Node("Sigmoid", {to.input(0)})});
}

DTRAIN_ONNX("silu", Translate);

}  // namespace
}  // namespace dtrain
