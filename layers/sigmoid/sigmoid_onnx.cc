// Exports sigmoid as ONNX operators.
#include "framework/onnx/onnx_layer.h"

namespace dtrain {
namespace {

void Translate(OnnxLayer& to) { to.Result("Sigmoid", {to.input(0)}); }

DTRAIN_ONNX("sigmoid", Translate);

}  // namespace
}  // namespace dtrain
