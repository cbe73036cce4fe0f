// Softmax cross-entropy in plain loops.
#pragma once

#include <algorithm>
#include <cmath>

#include "framework/nn/layer_case.h"

namespace dtrain {

class SoftmaxCrossEntropyReference : public LayerReference {
 public:
  void Forward(const Layer&, RefArgs& args) const override {
    for (int64_t n = 0; n < args.outputs[0].shape[0]; ++n) {
      args.outputs[0].values[n] = LogSum(args, n) - Logit(args, n, Label(args, n));
    }
  }

  void Backward(const Layer&, RefArgs& args) const override {
    const int64_t classes = args.inputs[0].shape[1];
    for (int64_t n = 0; n < args.inputs[0].shape[0]; ++n) {
      for (int64_t c = 0; c < classes; ++c) {
        const double p = std::exp(Logit(args, n, c) - LogSum(args, n));
        args.input_gradients[0].values[n * classes + c] =
            (p - (c == Label(args, n) ? 1 : 0)) * args.loss_scale;
      }
    }
  }

 private:
  static double Logit(const RefArgs& args, int64_t n, int64_t c) {
    return args.inputs[0].values[n * args.inputs[0].shape[1] + c];
  }
  static int64_t Label(const RefArgs& args, int64_t n) {
    return static_cast<int64_t>(args.inputs[1].values[n]);
  }
  static double LogSum(const RefArgs& args, int64_t n) {
    double largest = Logit(args, n, 0);
    for (int64_t c = 1; c < args.inputs[0].shape[1]; ++c) {
      largest = std::max(largest, Logit(args, n, c));
    }
    double sum = 0;
    for (int64_t c = 0; c < args.inputs[0].shape[1]; ++c) {
      sum += std::exp(Logit(args, n, c) - largest);
    }
    return largest + std::log(sum);
  }
};

}  // namespace dtrain
