// Accuracy.  y[n] = 1 when the largest of x[n, 0..C) is at label[n], else 0; the first of equal
// ones counts as the largest, and a sample with a NaN is wrong.
//   x [N, C] class scores;  label [N] int32;  y [N]
#pragma once

#include "framework/nn/layer.h"

namespace dtrain {

class Accuracy : public Layer {
 public:
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  LayerRole role() const override { return LayerRole::kMetric; }
  int input_count() const override { return 2; }
  bool InputHasGradient(int) const override { return false; }
};

}  // namespace dtrain
