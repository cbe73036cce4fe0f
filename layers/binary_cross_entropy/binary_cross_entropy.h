// Binary cross-entropy on logits, the sigmoid included (PyTorch BCEWithLogitsLoss, Caffe
// SigmoidCrossEntropyLoss): each score is a question of its own, to be answered with yes (1), no (0) or a
// probability.
//   x [N, ...] logits;  target in [0, 1]: nn/element_loss.h says which
//   loss[n] = mean over i of  -t log s - (1 - t) log(1 - s),  s = sigmoid(x[n,i]), t = target[n,i]
// computed as max(x, 0) - x t + log(1 + exp(-|x|)), which no logit overflows.
// Backward: dx = loss_scale (s - t) / D, D elements a sample.
// Class labels may have one logit (classes 0 and 1), or one logit a class: then each is asked whether it is the
// one.
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
