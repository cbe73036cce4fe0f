// Sigmoid linear unit, also called swish.  y = x sigmoid(x), elementwise, on a tensor of any shape; no
// keys (PyTorch SiLU).  Backward, with s = sigmoid(x): dx = dy s (1 + x (1 - s)).
#include "framework/nn/layer.h"

namespace dtrain {
namespace {

class Silu : public Layer {
 public:
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override { return {inputs[0]}; }
  Cost CostOf(std::span<const Shape> inputs) const override;
};

Cost Silu::CostOf(std::span<const Shape> inputs) const {
  const auto elements = static_cast<double>(inputs[0].count());
  return {21 * elements, 25 * elements};
}

DTRAIN_LAYER("silu", Silu, "x sigmoid(x), also called swish");

}  // namespace
}  // namespace dtrain
