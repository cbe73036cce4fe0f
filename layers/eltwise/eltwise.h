// Elementwise combination of two tensors or more of one shape (Caffe Eltwise; PyTorch's +, *, maximum):
// the end of a residual block, a gate.
//   sum       y = a + b + ...; the gradient of each is dy
//   product   y = a b ...;     the gradient of each is dy times the others
//   max       y = the largest; of equal ones the first takes the gradient, and a NaN is never lost
// InferShapes throws ShapeError when the shapes differ.
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

  EltwiseOperation operation() const { return operation_; }

 private:
  EltwiseOperation operation_ = EltwiseOperation::kSum;
};

}  // namespace dtrain
