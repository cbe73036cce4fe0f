// Flatten in plain loops.
#pragma once

#include "framework/nn/layer_case.h"

namespace dtrain {

class FlattenReference : public LayerReference {
 public:
  void Forward(const Layer&, RefArgs& args) const override {
    args.outputs[0].values = args.inputs[0].values;
  }
  void Backward(const Layer&, RefArgs& args) const override {
    args.input_gradients[0].values = args.output_gradients[0].values;
  }
};

}  // namespace dtrain
