// What losses have in common that are a mean over the elements of a sample (mean_squared_error,
// binary_cross_entropy): inputs and shapes.
//
//   x [N, ...] scores;  target;  loss [N]
//   loss[n] = mean over the D elements i of sample n of  term(x[n,i], target[n,i])
//
// The net sums over the samples and divides by those of the global batch, which gives PyTorch's
// `reduction="mean"`.  Backward: dx = loss_scale / D * derivative of the term.  The target is
//
//   of x's shape                numbers: fp32, or int32 taken as numbers
//   [N, ...] for x [N, ..., 1]  the same, a number less deep: the label of a sample with one score
//   [N, ...] for x [N, ..., C]  int32 classes, of a data set that says how many it has: 1 at the class of a
//                               label and 0 at the others
//
// InferShapes throws ShapeError for others, and for more classes than scores.  A label that is no class
// throws DataError with the sample's position in the global batch (on a GPU: its loss and gradients
// are NaN), as does, where the loss takes shares, a target outside [0, 1].
#pragma once

#include <cstdint>

#include "framework/device/device_code.h"
#include "framework/device/tensor.h"
#include "framework/nn/layer.h"

namespace dtrain {

class ElementLoss : public Layer {
 public:
  // `takes_shares`: targets are probabilities.
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

  // Throws DataError, see above.
  void CheckTargets(const Tensor& scores, const Tensor& target, int64_t first_position,
                    uint64_t step) const;

 private:
  const bool takes_shares_;
  int64_t classes_ = 0;  // of the target; 0: unknown, or numbers
};

// A batch's targets, one for each score.
class Targets {
 public:
  Targets(const Tensor& scores, const Tensor& target)
      : numbers_(target.dtype == DType::kI32 ? nullptr : target.f32()),
        integers_(target.dtype == DType::kI32 ? target.i32() : nullptr),
        classes_(scores.shape.count() / target.shape.count()) {}

  // Of score i.  A label that is no class gives NaN.
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
  int64_t classes_;  // that a label is spread over; 1: it is a number
};

}  // namespace dtrain
