// Exports LSTM as ONNX's LSTM, whose gates are in the order i, o, f, g.
#include "framework/onnx/recurrent_onnx.h"

namespace dtrain {
namespace {

void TranslateLstm(OnnxLayer& to) { TranslateRecurrent(to, "LSTM", {0, 3, 1, 2}, {}); }

DTRAIN_ONNX("lstm", TranslateLstm);

}  // namespace
}  // namespace dtrain
