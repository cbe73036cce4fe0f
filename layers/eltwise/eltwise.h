// Elementwise combination of two or more tensors of the same shape (Caffe Eltwise; PyTorch's +, *, maximum), for
// example at the end of a residual block or as a gate.
//   sum       y = a + b + ...; the gradient of each is dy
//   product   y = a b ...;     the gradient of each is dy times the others
//   max       y = the largest; the gradient is dy for the first of equal ones, else 0; a NaN propagates to y
// InferShapes throws ShapeError if the shapes differ.
#pragma once

#include "framework/nn/layer.h"

namespace dtrain {

enum class EltwiseOperation { kSum, kProduct, kMax };

class Eltwise : public Layer {
 public:
  void Configure(config::Reader& reader) override;
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  Cost CostOf(std::span<const Shape> inputs) const override;
  int input_count() const override { return kTwoOrMoreInputs; }
  bool adds_inputs() const override { return operation_ == EltwiseOperation::kSum; }

  EltwiseOperation operation() const { return operation_; }

 private:
  EltwiseOperation operation_ = EltwiseOperation::kSum;
};

}  // namespace dtrain
