// Sum of two tensors in plain loops.
#pragma once

#include "framework/nn/layer_case.h"

namespace dtrain {

class EltwiseReference : public LayerReference {
 public:
  void Forward(const Layer&, RefArgs& args) const override {
    auto& y = args.outputs[0].values;
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] = args.inputs[0].values[i] + args.inputs[1].values[i];
    }
  }

  void Backward(const Layer&, RefArgs& args) const override {
    for (RefTensor& gradient : args.input_gradients) {
      gradient.values = args.output_gradients[0].values;
    }
  }
};

}  // namespace dtrain
