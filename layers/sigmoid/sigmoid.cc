// The logistic function.  y = 1 / (1 + exp(-x)), elementwise, on a tensor of any shape; no keys (PyTorch
// Sigmoid, Caffe Sigmoid).  Backward: dx = dy y (1 - y).  A model that would end in a sigmoid should apply the loss
// binary_cross_entropy to the sigmoid's input instead, since that loss takes logits.
#include "framework/nn/layer.h"

namespace dtrain {
namespace {

class Sigmoid : public Layer {
 public:
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override { return {inputs[0]}; }
  Cost CostOf(std::span<const Shape> inputs) const override;
};

Cost Sigmoid::CostOf(std::span<const Shape> inputs) const {
  const auto elements = static_cast<double>(inputs[0].count());
  return {20 * elements, 3 * elements};
}

DTRAIN_LAYER("sigmoid", Sigmoid, "logistic function 1 / (1 + exp(-x))");

}  // namespace
}  // namespace dtrain
