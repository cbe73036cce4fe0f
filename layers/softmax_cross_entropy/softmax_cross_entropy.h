// Softmax and cross-entropy in one (PyTorch CrossEntropyLoss, Caffe SoftmaxWithLoss).
//   x [N, ..., C] logits;  label [N, ...] int32 in [0, C);  loss [N]
//   loss[n] = sum over n's terms t of  log(sum_c exp x[t,c]) - sum_c q[t,c] x[t,c]
// A term is one label. q is 1 at the label and 0 elsewhere; with `label_smoothing: s` it is 1 - s + s/C at the label
// and s/C elsewhere.  Terms whose label is `ignore` contribute 0.  Dividing by the number of terms of the batch
// (KernelArgs::loss_scale) gives PyTorch's mean.
// Backward: dx[t,c] = (softmax(x)[t,c] - q[t,c]) * loss_scale.  As a model's loss it takes no gradient by its output.
// A label outside [0, C) throws DataError with the sample's position in the global batch; on a GPU its loss and
// gradients become NaN instead.  InferShapes throws ShapeError if the labels are known to have more than C classes.
#pragma once

#include "framework/nn/layer.h"

namespace dtrain {

class SoftmaxCrossEntropy : public Layer {
 public:
  void Configure(config::Reader& reader) override;
  void SetInputClasses(std::span<const int64_t> classes) override { classes_ = classes[1]; }
  // Returns the labels' classes, without the last one if that is ignored.
  int64_t label_classes() const override {
    return classes_ > 0 && classes_ == ignore_ + 1 ? ignore_ : classes_;
  }
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  Cost CostOf(std::span<const Shape> inputs) const override;
  LayerRole role() const override { return LayerRole::kLoss; }
  int input_count() const override { return 2; }
  InputKind input_kind(int input) const override {
    return input == 1 ? InputKind::kClasses : InputKind::kNumbers;
  }
  bool InputHasGradient(int input) const override { return input == 0; }

  double label_smoothing() const { return label_smoothing_; }
  int64_t ignored() const { return ignore_; }  // -1: none
  bool Ignores(int64_t label) const { return ignore_ >= 0 && label == ignore_; }

 private:
  int64_t classes_ = 0;  // classes of the labels; 0: unknown
  int64_t ignore_ = -1;  // -1: none
  double label_smoothing_ = 0;
};

}  // namespace dtrain
