// Exports concat as ONNX operators.
#include "framework/onnx/onnx_layer.h"

namespace dtrain {
namespace {

void TranslateConcat(OnnxLayer& to) { to.Result("Concat", to.inputs(), {{"axis", int64_t{-1}}}); }

DTRAIN_ONNX("concat", TranslateConcat);

}  // namespace
}  // namespace dtrain
