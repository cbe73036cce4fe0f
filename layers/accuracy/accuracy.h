// Accuracy.  y[n] = 1 when x[n, label[n]] is among the `top_k` (1) largest of x[n, 0..C), else 0;
// the first of equal ones counts as the larger, and a sample with a NaN is wrong.
//   x [N, C] class scores;  label [N] int32;  y [N]
// One score a sample, as binary_cross_entropy takes it, says class 1 where it is above 0, else class 0.
// The layer's name is the metric's: "accuracy", "top5".  InferShapes throws ShapeError for
// top_k > C.
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

  int64_t top_k() const { return top_k_; }

 private:
  int64_t top_k_ = 1;
};

// Whether one score, for class 1 or 0, is right.
inline DT_DEVICE bool IsRightAnswer(float score, int32_t label) {
  return !std::isnan(score) && (label == 0 || label == 1) && (score > 0) == (label == 1);
}

}  // namespace dtrain
