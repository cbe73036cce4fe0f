// Inner product in plain loops: the measure for every kernel.
#pragma once

#include "framework/nn/layer_case.h"
#include "layers/inner_product/inner_product.h"

namespace dtrain {

class InnerProductReference : public LayerReference {
 public:
  // y[n,o] = b[o] + sum_i x[n,i] w[o,i]
  void Forward(const Layer& layer, RefArgs& args) const override {
    const auto [batch, in, out] = SizesOf(layer, args);
    const auto& x = args.inputs[0].values;
    const auto& w = args.params[0].values;
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t o = 0; o < out; ++o) {
        double y = args.params.size() > 1 ? args.params[1].values[o] : 0;
        for (int64_t i = 0; i < in; ++i) y += x[n * in + i] * w[o * in + i];
        args.outputs[0].values[n * out + o] = y;
      }
    }
  }

  // dx[n,i] = sum_o dy[n,o] w[o,i]     dw[o,i] = sum_n dy[n,o] x[n,i]     db[o] = sum_n dy[n,o]
  void Backward(const Layer& layer, RefArgs& args) const override {
    const auto [batch, in, out] = SizesOf(layer, args);
    const auto& x = args.inputs[0].values;
    const auto& w = args.params[0].values;
    const auto& dy = args.output_gradients[0].values;
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t o = 0; o < out; ++o) {
        const double g = dy[n * out + o];
        if (args.params.size() > 1) args.param_gradients[1].values[o] += g;
        for (int64_t i = 0; i < in; ++i) {
          args.input_gradients[0].values[n * in + i] += g * w[o * in + i];
          args.param_gradients[0].values[o * in + i] += g * x[n * in + i];
        }
      }
    }
  }

 private:
  struct Sizes {
    int64_t batch, in, out;
  };
  static Sizes SizesOf(const Layer& layer, const RefArgs& args) {
    const auto& inner = static_cast<const InnerProduct&>(layer);
    return {args.inputs[0].shape.count() / inner.inputs(), inner.inputs(), inner.outputs()};
  }
};

}  // namespace dtrain
