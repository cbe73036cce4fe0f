// Exports sums, products and maxima as ONNX operators.  Mul, unlike Sum and Max, takes only two inputs.
#include "framework/onnx/onnx_layer.h"
#include "layers/eltwise/eltwise.h"

namespace dtrain {
namespace {

void TranslateProduct(OnnxLayer& to) {
  std::string product = to.input(0);
  for (size_t i = 1; i + 1 < to.inputs().size(); ++i) {
    product = to.Node("Mul", {product, to.input(i)});
  }
  to.Result("Mul", {product, to.inputs().back()});
}

void TranslateEltwise(OnnxLayer& to) {
  switch (to.As<Eltwise>().operation()) {
    case EltwiseOperation::kSum:
      return to.Result("Sum", to.inputs());
    case EltwiseOperation::kMax:
      return to.Result("Max", to.inputs());
    case EltwiseOperation::kProduct:
      return TranslateProduct(to);
  }
}

DTRAIN_ONNX("eltwise", TranslateEltwise);

}  // namespace
}  // namespace dtrain
