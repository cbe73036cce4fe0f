// Implements ReLU in plain loops, as the reference for the tests.
#include "framework/nn/layer_case.h"

namespace dtrain {
namespace {

class ReluReference : public LayerReference {
 public:
  void Forward(const Layer&, RefArgs& args) const override {
    const auto& x = args.inputs[0].values;
    for (size_t i = 0; i < x.size(); ++i) args.outputs[0].values[i] = x[i] > 0 ? x[i] : 0;
  }

  void Backward(const Layer&, RefArgs& args) const override {
    const auto& x = args.inputs[0].values;
    for (size_t i = 0; i < x.size(); ++i) {
      args.input_gradients[0].values[i] = x[i] > 0 ? args.output_gradients[0].values[i] : 0;
    }
  }
};

DTRAIN_LAYER_CASES("relu", ReluReference,
                   {{"one number", "{}", {{1, 1}}},
                    {"vector", "{}", {{4, 10}}},
                    {"image", "{}", {{3, 5, 7, 6}}},
                    {"two blocks of samples", "{}", {{18, 3, 4, 4}}},
                    {"long", "{}", {{2, 40000}}, 0, false}});

}  // namespace
}  // namespace dtrain
