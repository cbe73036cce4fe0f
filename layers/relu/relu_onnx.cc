// Exports ReLU as ONNX operators.
#include "framework/onnx/onnx_layer.h"

namespace dtrain {
namespace {

void Translate(OnnxLayer& to) { to.Result("Relu", {to.input(0)}); }

DTRAIN_ONNX("relu", Translate);

}  // namespace
}  // namespace dtrain
