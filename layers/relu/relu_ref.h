// ReLU in plain loops.
#pragma once

#include "framework/nn/layer_case.h"

namespace dtrain {

class ReluReference : public LayerReference {
 public:
  void Forward(const Layer&, RefArgs& args) const override {
    const auto& x = args.inputs[0].values;
    for (size_t i = 0; i < x.size(); ++i) args.outputs[0].values[i] = x[i] > 0 ? x[i] : 0;
  }

  void Backward(const Layer&, RefArgs& args) const override {
    const auto& x = args.inputs[0].values;
    for (size_t i = 0; i < x.size(); ++i) {
      args.input_gradients[0].values[i] = x[i] > 0 ? args.output_gradients[0].values[i] : 0;
    }
  }
};

}  // namespace dtrain
