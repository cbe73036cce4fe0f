// Exports flatten as ONNX operators.
#include "framework/onnx/onnx_layer.h"

namespace dtrain {
namespace {

void Translate(OnnxLayer& to) { to.Result("Flatten", {to.input(0)}, {{"axis", int64_t{1}}}); }

DTRAIN_ONNX("flatten", Translate);

}  // namespace
}  // namespace dtrain
