// Exports dropout as ONNX's Identity, since evaluation drops nothing.
#include "framework/onnx/onnx_layer.h"

namespace dtrain {
namespace {

void TranslateDropout(OnnxLayer& to) { to.Result("Identity", {to.input(0)}); }

DTRAIN_ONNX("dropout", TranslateDropout);

}  // namespace
}  // namespace dtrain
