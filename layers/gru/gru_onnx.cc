// Exports GRU as ONNX operators.
#include "framework/onnx/recurrent_onnx.h"

namespace dtrain {
namespace {

void TranslateGru(OnnxLayer& to) {
  TranslateRecurrent(to, "GRU", kOnnxGruGates, kOnnxGruAttributes);
}

DTRAIN_ONNX("gru", TranslateGru);

}  // namespace
}  // namespace dtrain
