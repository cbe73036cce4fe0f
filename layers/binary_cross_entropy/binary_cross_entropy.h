// Binary cross-entropy on logits, the sigmoid included (PyTorch BCEWithLogitsLoss, Caffe
// SigmoidCrossEntropyLoss): each score is a separate yes-no question, whose target is 1, 0 or a probability.
//   x [N, ...] logits;  target in [0, 1], of a shape that nn/element_loss.h describes
//   loss[n] = mean over i of  -t log s - (1 - t) log(1 - s),  s = sigmoid(x[n,i]), t = target[n,i]
// The loss is computed as max(x, 0) - x t + log(1 + exp(-|x|)), which does not overflow for any logit.
// Backward: dx = loss_scale (s - t) / D for D elements per sample.
// Targets that are class labels need one logit (classes 0 and 1) or one logit per class, whose target is 1 for the
// label's class and 0 for the others.
#pragma once

#include <cmath>

#include "framework/nn/element_loss.h"

namespace dtrain {

class BinaryCrossEntropy : public ElementLoss {
 public:
  BinaryCrossEntropy() : ElementLoss(true) {}
  Cost CostOf(std::span<const Shape> inputs) const override;
  ScoreMeaning score_meaning() const override { return ScoreMeaning::kQuestions; }
};

// A target outside [0, 1] gives NaN.
struct BinaryCrossEntropyTerm {
  static DT_DEVICE bool IsShare(float target) { return target >= 0 && target <= 1; }
  static DT_DEVICE float Loss(float x, float target) {
    if (!IsShare(target)) return NAN;
    const float positive = x < 0 ? 0 : x;  // keeps a NaN
    return positive - x * target + std::log1p(std::exp(-std::fabs(x)));
  }
  static DT_DEVICE float Gradient(float x, float target) {
    if (!IsShare(target)) return NAN;
    return 1 / (1 + std::exp(-x)) - target;
  }
};

}  // namespace dtrain
