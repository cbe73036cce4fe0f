// Rectified linear unit.  y = max(0, x), elementwise, on a tensor of any shape; no keys.
// Backward: dx = dy where y > 0, else 0 (so 0 at x = 0, as in PyTorch).
#include "framework/nn/layer.h"

namespace dtrain {
namespace {

class Relu : public Layer {
 public:
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override { return {inputs[0]}; }
  Cost CostOf(std::span<const Shape> inputs) const override;
};

Cost Relu::CostOf(std::span<const Shape> inputs) const {
  const auto elements = static_cast<double>(inputs[0].count());
  return {elements, elements};
}

DTRAIN_LAYER("relu", Relu, "max(0, x)");

}  // namespace
}  // namespace dtrain
