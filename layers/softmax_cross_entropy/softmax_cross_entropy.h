// Softmax and cross-entropy in one.  loss[n] = log(sum_c exp x[n,c]) - x[n, label[n]]
// (PyTorch CrossEntropyLoss, Caffe SoftmaxWithLoss.)
//   x [N, C] logits;  label [N] int32 in [0, C);  loss [N], one for each sample
// Backward: dx[n,c] = (softmax(x)[n,c] - [c = label[n]]) * loss_scale.  As the last word of a model
// it takes no gradient from above.
// A label outside [0, C) throws DataError with the sample's position in the global batch.
#pragma once

#include "framework/nn/layer.h"

namespace dtrain {

class SoftmaxCrossEntropy : public Layer {
 public:
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  Cost CostOf(std::span<const Shape> inputs) const override;
  LayerRole role() const override { return LayerRole::kLoss; }
  int input_count() const override { return 2; }
  bool InputHasGradient(int input) const override { return input == 0; }
};

}  // namespace dtrain
