// Elementwise combination of two tensors of one shape (Caffe Eltwise; PyTorch's +): the end of a
// residual block.
//   sum   y = a + b;  both gradients are dy
// InferShapes throws ShapeError when the shapes differ.
#pragma once

#include "framework/nn/layer.h"

namespace dtrain {

class Eltwise : public Layer {
 public:
  void Configure(config::Reader& reader) override;
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  Cost CostOf(std::span<const Shape> inputs) const override;
  int input_count() const override { return 2; }
};

}  // namespace dtrain
