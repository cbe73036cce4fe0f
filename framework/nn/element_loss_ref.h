// Implements the reference of element losses (nn/element_loss.h) in plain loops, for the cases of
// losses.
#pragma once

#include "framework/nn/layer_case.h"

namespace dtrain {

// `Term` is the kernels' term, evaluated in double.
template <class Term>
class ElementLossReference : public LayerReference {
 public:
  void Forward(const Layer&, RefArgs& args) const override {
    const int64_t elements = args.inputs[0].shape.CountFrom(1);
    for (double& loss : args.outputs[0].values) loss = 0;
    for (int64_t i = 0; i < args.inputs[0].shape.count(); ++i) {
      args.outputs[0].values[i / elements] +=
          Term::Loss(args.inputs[0].values[i], TargetOf(args, i)) / static_cast<double>(elements);
    }
  }

  void Backward(const Layer&, RefArgs& args) const override {
    const double share = args.loss_scale / static_cast<double>(args.inputs[0].shape.CountFrom(1));
    for (int64_t i = 0; i < args.inputs[0].shape.count(); ++i) {
      args.input_gradients[0].values[i] =
          share * Term::Gradient(args.inputs[0].values[i], TargetOf(args, i));
    }
  }

 private:
  static double TargetOf(const RefArgs& args, int64_t i) {
    const int64_t classes = args.inputs[0].shape.count() / args.inputs[1].shape.count();
    const double value = args.inputs[1].values[i / classes];
    if (classes == 1) return value;
    return static_cast<int64_t>(value) == i % classes ? 1 : 0;
  }
};

}  // namespace dtrain
