// SiLU in ONNX's operators: this version has none of its own.
#include "framework/onnx/onnx_layer.h"

namespace dtrain {
namespace {

void Translate(OnnxLayer& to) {
  to.Result("Mul", {to.input(0), to.Node("Sigmoid", {to.input(0)})});
}

DTRAIN_ONNX("silu", Translate);

}  // namespace
}  // namespace dtrain
