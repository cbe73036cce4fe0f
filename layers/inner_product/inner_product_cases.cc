// Implements the inner product in plain loops, as the reference against which every kernel is tested.
#include "framework/nn/layer_case.h"
#include "layers/inner_product/inner_product.h"

namespace dtrain {
namespace {

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

DTRAIN_LAYER_CASES(
    "inner_product", InnerProductReference,
    {{"tiny", "{outputs: 3}", {{2, 5}}},
     {"one sample", "{outputs: 7}", {{1, 33}}},
     {"one output", "{outputs: 1}", {{19, 6}}},
     {"no bias", "{outputs: 10, bias: false}", {{17, 84}}},
     {"each step of a sequence", "{outputs: 6, axis: 2}", {{3, 7, 5}}},
     {"image", "{outputs: 12}", {{5, 3, 4, 4}}},
     {"two panels and a rest", "{outputs: 13}", {{37, 31}}},
     {"lenet fc1", "{outputs: 120}", {{64, 400}}, 0, false},
     {"deeper than a block", "{outputs: 9}", {{70, 1100}}, 0, false},
     {"gaussian start", "{outputs: 4, weight_init: {name: gaussian, value: 0.1}}", {{3, 8}}}});

}  // namespace
}  // namespace dtrain
