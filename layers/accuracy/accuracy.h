// Accuracy.  y[n] = 1 if x[n, label[n]] is among the `top_k` (default 1) largest of x[n, 0..C), else 0.  Of equal
// scores the first counts as the larger; a sample with a NaN counts as wrong.
//   x [N, C] class scores;  label [N] int32;  y [N]
// If C = 1, as binary_cross_entropy takes it, a score above 0 predicts class 1, any other class 0.  The layer's name is
// also the metric's name ("accuracy", "top5").  InferShapes throws ShapeError if top_k > C.
#pragma once

#include <cmath>

#include "framework/device/device_code.h"
#include "framework/nn/layer.h"

namespace dtrain {

class Accuracy : public Layer {
 public:
  void Configure(config::Reader& reader) override;
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  LayerRole role() const override { return LayerRole::kMetric; }
  int input_count() const override { return 2; }
  InputKind input_kind(int input) const override {
    return input == 1 ? InputKind::kClasses : InputKind::kNumbers;
  }
  bool InputHasGradient(int) const override { return false; }
  int64_t accepted_answers() const override { return top_k_; }

  int64_t top_k() const { return top_k_; }

 private:
  int64_t top_k_ = 1;
};

// Returns true if a single score (C = 1) predicts `label`.
inline DT_DEVICE bool IsRightAnswer(float score, int32_t label) {
  return !std::isnan(score) && (label == 0 || label == 1) && (score > 0) == (label == 1);
}

}  // namespace dtrain
