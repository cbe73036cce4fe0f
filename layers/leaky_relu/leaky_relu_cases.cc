// Implements leaky ReLU in plain loops, as the reference for the tests.
#include "framework/nn/layer_case.h"
#include "layers/leaky_relu/leaky_relu.h"

namespace dtrain {
namespace {

class LeakyReluReference : public LayerReference {
 public:
  void Forward(const Layer& layer, RefArgs& args) const override {
    const double slope = static_cast<const LeakyRelu&>(layer).slope();
    const auto& x = args.inputs[0].values;
    for (size_t i = 0; i < x.size(); ++i) {
      args.outputs[0].values[i] = x[i] > 0 ? x[i] : slope * x[i];
    }
  }

  void Backward(const Layer& layer, RefArgs& args) const override {
    const double slope = static_cast<const LeakyRelu&>(layer).slope();
    const auto& x = args.inputs[0].values;
    for (size_t i = 0; i < x.size(); ++i) {
      args.input_gradients[0].values[i] =
          args.output_gradients[0].values[i] * (x[i] > 0 ? 1 : slope);
    }
  }
};

DTRAIN_LAYER_CASES("leaky_relu", LeakyReluReference,
                   {{"one number", "{}", {{1, 1}}},
                    {"vector", "{}", {{4, 10}}},
                    {"a fifth of an image", "{slope: 0.2}", {{3, 5, 7, 6}}},
                    {"steeper below", "{slope: 3}", {{18, 3, 4, 4}}},
                    {"nothing below", "{slope: 0}", {{5, 9}}},
                    {"long", "{}", {{2, 40000}}, 0, false}});

}  // namespace
}  // namespace dtrain
