// Activations: functions of one number, applied to each element of a tensor of any shape.  The output has the input's
// shape.  With s = sigmoid(x) = 1 / (1 + exp(-x)):
//
//   relu        y = max(0, x);  dx = dy where y > 0, else 0, so 0 at x = 0, as in PyTorch
//   leaky_relu  y = x where x > 0, else slope x;  dx = dy where y > 0, else slope dy.  Since slope >= 0, x and y have
//               one sign.  (PyTorch LeakyReLU, Caffe ReLU with negative_slope)
//   sigmoid     y = s;  dx = dy y (1 - y).  (PyTorch and Caffe Sigmoid)  A model that would end in a sigmoid should
//               apply the loss binary_cross_entropy to the sigmoid's input instead, since that loss takes logits.
//   tanh        y = tanh(x);  dx = dy (1 - y^2).  (PyTorch Tanh, Caffe TanH)
//   silu        y = x s;  dx = dy s (1 + x (1 - s)).  (PyTorch SiLU, also called swish)
//   gelu        Hendrycks and Gimpel 2016, PyTorch GELU.  The key `approximate` is PyTorch's:
//     none      y = x P(x),  P(x) = (1 + erf(x / sqrt 2)) / 2, the standard normal distribution function;
//               dx = dy (P(x) + x p(x)),  p(x) = exp(-x^2 / 2) / sqrt(2 pi)
//     tanh      y = x t,  t = (1 + tanh(z)) / 2 = sigmoid(2 z),  z = sqrt(2 / pi) (x + 0.044715 x^3);
//               dx = dy (t + x t (1 - t) 2 dz/dx).  It differs from `none` by 5e-4 at most.
#pragma once

#include "framework/nn/layer.h"
#include "layers/activations/activations_loops.h"

namespace dtrain {

// The types whose kernels the family registers.
inline constexpr const char* kActivations[] = {"gelu",    "leaky_relu", "relu",
                                               "sigmoid", "silu",       "tanh"};

class ActivationLayer : public Layer {
 public:
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override { return {inputs[0]}; }
  Cost CostOf(std::span<const Shape> inputs) const override;

  const ActivationFunction& function() const { return function_; }
  // True if the backward pass reads x, which the output must then not overwrite in training; false if it reads y.
  bool keeps_input() const;

 protected:
  void Set(ActivationFunction function, Cost of_element) {
    function_ = function;
    of_element_ = of_element;
  }

 private:
  ActivationFunction function_;
  Cost of_element_;
};

}  // namespace dtrain
