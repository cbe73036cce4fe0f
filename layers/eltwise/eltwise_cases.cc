// Sum of two tensors in plain loops.
#include "framework/nn/layer_case.h"

namespace dtrain {
namespace {

class EltwiseReference : public LayerReference {
 public:
  void Forward(const Layer&, RefArgs& args) const override {
    auto& y = args.outputs[0].values;
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] = args.inputs[0].values[i] + args.inputs[1].values[i];
    }
  }

  void Backward(const Layer&, RefArgs& args) const override {
    for (RefTensor& gradient : args.input_gradients) {
      gradient.values = args.output_gradients[0].values;
    }
  }
};

DTRAIN_LAYER_CASES("eltwise", EltwiseReference,
                   {{"vector", "{}", {{4, 10}, {4, 10}}},
                    {"image", "{operation: sum}", {{3, 5, 7, 6}, {3, 5, 7, 6}}},
                    {"two blocks of samples", "{}", {{18, 3, 4, 4}, {18, 3, 4, 4}}},
                    {"long", "{}", {{2, 40000}, {2, 40000}}, 0, false}});

}  // namespace
}  // namespace dtrain
