// Mean squared error, a loss for regression (PyTorch MSELoss).
//   x [N, ...];  target of a shape that nn/element_loss.h describes
//   loss[n] = mean over i of (x[n,i] - target[n,i])^2
// Backward: dx = loss_scale 2 (x - target) / D for D elements per sample.  Caffe's EuclideanLoss is D / 2 times as
// large.
#pragma once

#include "framework/nn/element_loss.h"

namespace dtrain {

class MeanSquaredError : public ElementLoss {
 public:
  MeanSquaredError() : ElementLoss(false) {}
  Cost CostOf(std::span<const Shape> inputs) const override;
  ScoreMeaning score_meaning() const override { return ScoreMeaning::kNumbers; }
};

struct SquaredErrorTerm {
  static DT_DEVICE float Loss(float x, float target) { return (x - target) * (x - target); }
  static DT_DEVICE float Gradient(float x, float target) { return 2 * (x - target); }
};

}  // namespace dtrain
