// Exports flatten as ONNX operators.
#include "framework/onnx/onnx_layer.h"

namespace dtrain {
namespace {

void TranslateFlatten(OnnxLayer& to) {
  to.Result("Flatten", {to.input(0)}, {{"axis", int64_t{1}}});
}

DTRAIN_ONNX("flatten", TranslateFlatten);

}  // namespace
}  // namespace dtrain
