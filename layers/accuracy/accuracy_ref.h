// Accuracy in plain loops.
#pragma once

#include <algorithm>

#include "framework/nn/layer_case.h"

namespace dtrain {

class AccuracyReference : public LayerReference {
 public:
  void Forward(const Layer&, RefArgs& args) const override {
    const int64_t classes = args.inputs[0].shape[1];
    for (int64_t n = 0; n < args.inputs[0].shape[0]; ++n) {
      const double* x = args.inputs[0].values.data() + n * classes;
      const int64_t best = std::max_element(x, x + classes) - x;
      args.outputs[0].values[n] = best == static_cast<int64_t>(args.inputs[1].values[n]) ? 1 : 0;
    }
  }
  void Backward(const Layer&, RefArgs&) const override {}
};

}  // namespace dtrain
