// Exports batch normalisation with the running statistics as ONNX's BatchNormalization.
#include "framework/onnx/onnx_layer.h"
#include "layers/batch_norm/batch_norm.h"

namespace dtrain {
namespace {

void TranslateBatchNorm(OnnxLayer& to) {
  to.Result("BatchNormalization", {to.input(0), to.Param(0), to.Param(1), to.State(0), to.State(1)},
            {{"epsilon", static_cast<float>(to.As<BatchNorm>().eps())}});
}

DTRAIN_ONNX("batch_norm", TranslateBatchNorm);

}  // namespace
}  // namespace dtrain
