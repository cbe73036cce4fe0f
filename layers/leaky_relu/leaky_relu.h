// Leaky rectified linear unit.  y = x where x > 0, else slope x, elementwise, on a tensor of any shape
// (PyTorch LeakyReLU, Caffe ReLU with negative_slope).  Backward: dx = dy where x > 0, else slope dy.  Since slope >=
// 0, the sign of y decides, and x need not be kept.
#pragma once

#include "framework/nn/layer.h"

namespace dtrain {

class LeakyRelu : public Layer {
 public:
  void Configure(config::Reader& reader) override;
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override { return {inputs[0]}; }
  Cost CostOf(std::span<const Shape> inputs) const override;

  float slope() const { return slope_; }

 private:
  float slope_ = 0;
};

}  // namespace dtrain
