// Puts tensors beside each other along the last axis (PyTorch cat(dim=-1), Caffe Concat).
//   x_i [N, ..., C_i], any number of them, equal but for C_i;  y [N, ..., sum of C_i]
// InferShapes throws ShapeError when another axis differs.
#pragma once

#include "framework/nn/layer.h"

namespace dtrain {

class Concat : public Layer {
 public:
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  int input_count() const override { return kAnyInputs; }
};

}  // namespace dtrain
