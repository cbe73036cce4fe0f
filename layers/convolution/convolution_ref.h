// Convolution in plain loops: the measure for every kernel.
#pragma once

#include "framework/nn/layer_case.h"
#include "layers/convolution/convolution.h"

namespace dtrain {

class ConvolutionReference : public LayerReference {
 public:
  // y[n,o,i,j] = b[o] + sum_{c,ky,kx} x[n,c,i*s-p+ky,j*s-p+kx] w[o,c,ky,kx]
  void Forward(const Layer& layer, RefArgs& args) const override {
    const auto& x = args.inputs[0].values;
    const auto& w = args.params[0].values;
    auto& y = args.outputs[0];
    for (int64_t at = 0, plane = y.shape.CountFrom(2); at < y.shape.count(); ++at) {
      y.values[at] = args.params.size() > 1 ? args.params[1].values[at / plane % y.shape[1]] : 0;
    }
    ForEachProduct(layer, args, [&](int64_t out, int64_t in, int64_t weight) {
      y.values[out] += x[in] * w[weight];
    });
  }

  // Every product y += x w of Forward gives dx += dy w and dw += dy x; db[o] = sum dy[:,o,:,:].
  void Backward(const Layer& layer, RefArgs& args) const override {
    const auto& x = args.inputs[0].values;
    const auto& w = args.params[0].values;
    const auto& dy = args.output_gradients[0];
    auto& dx = args.input_gradients[0].values;
    auto& dw = args.param_gradients[0].values;
    ForEachProduct(layer, args, [&](int64_t out, int64_t in, int64_t weight) {
      dx[in] += dy.values[out] * w[weight];
      dw[weight] += dy.values[out] * x[in];
    });
    if (args.params.size() < 2) return;
    for (int64_t at = 0, plane = dy.shape.CountFrom(2); at < dy.shape.count(); ++at) {
      args.param_gradients[1].values[at / plane % dy.shape[1]] += dy.values[at];
    }
  }

 private:
  // Calls product(index in y, index in x, index in w) for each multiply-add.
  template <class Product>
  static void ForEachProduct(const Layer& layer, const RefArgs& args, const Product& product) {
    const auto& conv = static_cast<const Convolution&>(layer);
    const Shape& x = args.inputs[0].shape;
    const Shape& y = args.outputs[0].shape;
    const int64_t k = conv.kernel();
    for (int64_t out = 0; out < y.count(); ++out) {
      const int64_t n = out / y.CountFrom(1), o = out / y.CountFrom(2) % y[1];
      const int64_t top = out / y[3] % y[2] * conv.stride() - conv.pad();
      const int64_t left = out % y[3] * conv.stride() - conv.pad();
      for (int64_t tap = 0; tap < x[1] * k * k; ++tap) {
        const int64_t c = tap / (k * k), row = top + tap / k % k, column = left + tap % k;
        if (row < 0 || row >= x[2] || column < 0 || column >= x[3]) continue;
        product(out, ((n * x[1] + c) * x[2] + row) * x[3] + column, o * x[1] * k * k + tap);
      }
    }
  }
};

}  // namespace dtrain
