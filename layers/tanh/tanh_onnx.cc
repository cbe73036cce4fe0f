// Exports tanh as ONNX operators.
#include "framework/onnx/onnx_layer.h"

namespace dtrain {
namespace {

void Translate(OnnxLayer& to) { to.Result("Tanh", {to.input(0)}); }

DTRAIN_ONNX("tanh", Translate);

}  // namespace
}  // namespace dtrain
