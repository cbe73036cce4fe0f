// Exports a fully connected layer as ONNX's Gemm for vectors, or MatMul for sequences of vectors.
#include "framework/onnx/onnx_layer.h"
#include "layers/inner_product/inner_product.h"

namespace dtrain {
namespace {

void TranslateVectors(OnnxLayer& to) {
  std::string x = to.input(0);
  if (to.shape(0).rank() > 2) x = to.Node("Flatten", {x}, {{"axis", int64_t{1}}});
  std::vector<std::string> inputs = {x, to.Param(0)};
  if (to.As<InnerProduct>().has_bias()) inputs.push_back(to.Param(1));
  to.Result("Gemm", std::move(inputs), {{"transB", int64_t{1}}});
}

void TranslateSequences(OnnxLayer& to) {
  const auto& layer = to.As<InnerProduct>();
  std::string x = to.input(0);
  if (to.shape(0).rank() > layer.axis() + 1) {
    std::vector<int64_t> kept(static_cast<size_t>(layer.axis()), 0);
    kept.push_back(layer.inputs());
    x = to.Node("Reshape", {x, to.Constant("joined", kept)});
  }
  const std::string w = to.Node("Transpose", {to.Param(0)}, {{"perm", std::vector<int64_t>{1, 0}}});
  if (!layer.has_bias()) return to.Result("MatMul", {x, w});
  to.Result("Add", {to.Node("MatMul", {x, w}), to.Param(1)});
}

void TranslateInnerProduct(OnnxLayer& to) {
  to.As<InnerProduct>().axis() == 1 ? TranslateVectors(to) : TranslateSequences(to);
}

DTRAIN_ONNX("inner_product", TranslateInnerProduct);

}  // namespace
}  // namespace dtrain
