// Implements tanh in plain loops, as the reference for the tests.
#include <cmath>

#include "framework/nn/layer_case.h"

namespace dtrain {
namespace {

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

DTRAIN_LAYER_CASES("tanh", TanhReference,
                   {{"vector", "{}", {{4, 10}}},
                    {"image", "{}", {{3, 5, 7, 6}}},
                    {"two blocks of samples", "{}", {{18, 3, 4, 4}}},
                    {"long", "{}", {{2, 40000}}, 0, false}});

}  // namespace
}  // namespace dtrain
