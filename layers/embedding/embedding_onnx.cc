// Exports embedding as ONNX operators.
#include "framework/onnx/onnx_layer.h"

namespace dtrain {
namespace {

void TranslateEmbedding(OnnxLayer& to) { to.Result("Gather", {to.Param(0), to.input(0)}); }

DTRAIN_ONNX("embedding", TranslateEmbedding);

}  // namespace
}  // namespace dtrain
