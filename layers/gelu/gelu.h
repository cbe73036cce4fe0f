// Gaussian error linear unit (Hendrycks and Gimpel 2016; PyTorch GELU), elementwise, on a tensor of any
// shape.  The key `approximate` is PyTorch's:
//   none   y = x P(x),  P(x) = (1 + erf(x / sqrt 2)) / 2, the standard normal distribution function;
//          dx = dy (P(x) + x p(x)),  p(x) = exp(-x^2 / 2) / sqrt(2 pi)
//   tanh   y = x s,  s = (1 + tanh(z)) / 2 = sigmoid(2 z),  z = sqrt(2 / pi) (x + 0.044715 x^3);
//          dx = dy (s + x s (1 - s) 2 dz/dx)
// The two differ by 5e-4 at most.
#pragma once

#include "framework/nn/layer.h"

namespace dtrain {

class Gelu : public Layer {
 public:
  void Configure(config::Reader& reader) override;
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override { return {inputs[0]}; }
  Cost CostOf(std::span<const Shape> inputs) const override;

  bool by_tanh() const { return by_tanh_; }

 private:
  bool by_tanh_ = false;
};

}  // namespace dtrain
