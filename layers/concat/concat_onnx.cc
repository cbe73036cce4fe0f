// Exports concat as ONNX operators.
#include "framework/onnx/onnx_layer.h"

namespace dtrain {
namespace {

void Translate(OnnxLayer& to) { to.Result("Concat", to.inputs(), {{"axis", int64_t{-1}}}); }

DTRAIN_ONNX("concat", Translate);

}  // namespace
}  // namespace dtrain
