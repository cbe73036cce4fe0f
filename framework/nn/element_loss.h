// Defines the base class of losses that are a mean over the elements of a sample (mean_squared_error,
// binary_cross_entropy): inputs and shapes.
//
//   x [N, ...] scores;  target;  loss [N]
//   loss[n] = mean over the D elements i of sample n of  term(x[n,i], target[n,i])
//
// The net sums over the samples and divides by those of the global batch, which gives PyTorch's
// `reduction="mean"`.  Backward: dx = loss_scale / D * derivative of the term.  The target is
//
//   of x's shape                numbers: fp32, or int32 converted to fp32
//   [N, ...] for x [N, ..., 1]  the same without the last axis: one number for a sample with one score
//   [N, ...] for x [N, ..., C]  int32 classes of a data set with a known number of classes: the target is 1 at
//                               the class of a label and 0 at the others
//
// InferShapes throws ShapeError for other shapes, and for more classes than scores.  A label that is no class and, if
// targets are probabilities, a target outside [0, 1] throw DataError with the sample's position in the global batch (on
// a GPU, the sample's loss and gradients become NaN).
#pragma once

#include <cstdint>

#include "framework/device/device_code.h"
#include "framework/device/tensor.h"
#include "framework/nn/layer.h"

namespace dtrain {

class ElementLoss : public Layer {
 public:
  // `takes_shares`: targets are probabilities in [0, 1].
  explicit ElementLoss(bool takes_shares) : takes_shares_(takes_shares) {}

  void SetInputClasses(std::span<const int64_t> classes) override { classes_ = classes[1]; }
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  int64_t label_classes() const override { return classes_; }
  LayerRole role() const override { return LayerRole::kLoss; }
  int input_count() const override { return 2; }
  InputKind input_kind(int input) const override {
    return input == 1 ? InputKind::kEither : InputKind::kNumbers;
  }
  bool InputHasGradient(int input) const override { return input == 0; }

  // Throws DataError for a wrong target, see above.
  void CheckTargets(const Tensor& scores, const Tensor& target, int64_t first_position,
                    uint64_t step) const;

 private:
  const bool takes_shares_;
  int64_t classes_ = 0;  // classes of the target; 0: unknown, or numbers
};

// Gives a batch's targets, one for each score.
class Targets {
 public:
  Targets(const Tensor& scores, const Tensor& target)
      : numbers_(target.dtype == DType::kI32 ? nullptr : target.f32()),
        integers_(target.dtype == DType::kI32 ? target.i32() : nullptr),
        classes_(scores.shape.count() / target.shape.count()) {}

  // Returns the target of score i.  A label that is no class gives NaN.
  DT_DEVICE float At(int64_t i) const {
    if (numbers_ != nullptr) return numbers_[i];
    const int32_t value = integers_[i / classes_];
    if (classes_ == 1) return static_cast<float>(value);
    if (value < 0 || value >= classes_) return __builtin_nanf("");
    return value == i % classes_ ? 1.0f : 0.0f;
  }

 private:
  const float* numbers_;
  const int32_t* integers_;
  int64_t classes_;  // classes of a label; 1: the target is a number
};

}  // namespace dtrain
