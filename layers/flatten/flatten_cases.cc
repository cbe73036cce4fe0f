// Implements flatten in plain loops, as the reference for the tests.
#include "framework/nn/layer_case.h"

namespace dtrain {
namespace {

class FlattenReference : public LayerReference {
 public:
  void Forward(const Layer&, RefArgs& args) const override {
    args.outputs[0].values = args.inputs[0].values;
  }
  void Backward(const Layer&, RefArgs& args) const override {
    args.input_gradients[0].values = args.output_gradients[0].values;
  }
};

DTRAIN_LAYER_CASES("flatten", FlattenReference,
                   {{"image", "{}", {{3, 2, 4, 5}}}, {"already flat", "{}", {{2, 7}}}});

}  // namespace
}  // namespace dtrain
