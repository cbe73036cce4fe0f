// y = tanh(x), elementwise (PyTorch Tanh, Caffe TanH).
#pragma once

#include "framework/nn/layer.h"

namespace dtrain {

class Tanh : public Layer {
 public:
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override { return {inputs[0]}; }
  Cost CostOf(std::span<const Shape> inputs) const override;
};

}  // namespace dtrain
