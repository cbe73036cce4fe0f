// Rectified linear unit.  y = max(0, x), elementwise, on a tensor of any shape; no keys.
// Backward passes dy where y > 0 (so nothing at x = 0, as PyTorch).
#pragma once

#include "framework/nn/layer.h"

namespace dtrain {

class Relu : public Layer {
 public:
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override { return {inputs[0]}; }
  Cost CostOf(std::span<const Shape> inputs) const override;
};

}  // namespace dtrain
