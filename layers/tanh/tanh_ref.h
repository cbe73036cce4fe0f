// Tanh in plain loops.
#pragma once

#include <cmath>

#include "framework/nn/layer_case.h"

namespace dtrain {

class TanhReference : public LayerReference {
 public:
  void Forward(const Layer&, RefArgs& args) const override {
    for (size_t i = 0; i < args.outputs[0].values.size(); ++i) {
      args.outputs[0].values[i] = std::tanh(args.inputs[0].values[i]);
    }
  }

  void Backward(const Layer&, RefArgs& args) const override {
    for (size_t i = 0; i < args.outputs[0].values.size(); ++i) {
      const double y = args.outputs[0].values[i];
      args.input_gradients[0].values[i] = args.output_gradients[0].values[i] * (1 - y * y);
    }
  }
};

}  // namespace dtrain
