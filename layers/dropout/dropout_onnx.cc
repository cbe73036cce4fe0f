// Exports dropout as ONNX's Identity, since evaluation drops nothing.
#include "framework/onnx/onnx_layer.h"

namespace dtrain {
namespace {

void Translate(OnnxLayer& to) { to.Result("Identity", {to.input(0)}); }

DTRAIN_ONNX("dropout", Translate);

}  // namespace
}  // namespace dtrain
