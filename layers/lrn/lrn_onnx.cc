// Exports local response normalisation as ONNX's LRN, which has the same formula. onnxruntime accepts only images, so
// other shapes are reshaped to one.
#include "framework/onnx/onnx_layer.h"
#include "layers/lrn/lrn.h"

namespace dtrain {
namespace {

void TranslateLrn(OnnxLayer& to) {
  const auto& layer = to.As<Lrn>();
  const std::vector<OnnxAttribute> attributes = {{"size", layer.local_size()},
                                                 {"alpha", static_cast<float>(layer.alpha())},
                                                 {"beta", static_cast<float>(layer.beta())},
                                                 {"bias", static_cast<float>(layer.k())}};
  if (to.shape(0).rank() == 4) return to.Result("LRN", {to.input(0)}, attributes);
  const std::string image = to.Constant("image", {-1, to.shape(0)[1], to.shape(0).CountFrom(2), 1});
  const std::string seen = to.Node("Reshape", {to.input(0), image});
  to.Result("Reshape", {to.Node("LRN", {seen}, attributes), to.Node("Shape", {to.input(0)})});
}

DTRAIN_ONNX("lrn", TranslateLrn);

}  // namespace
}  // namespace dtrain
