// Implements the final state in plain loops, as the reference for the tests.
#include "framework/nn/layer_case.h"
#include "layers/final_state/final_state.h"

namespace dtrain {
namespace {

class FinalStateReference : public LayerReference {
 public:
  void Forward(const Layer& layer, RefArgs& args) const override {
    const Shape& x = args.inputs[0].shape;
    for (int64_t n = 0; n < x[0]; ++n) {
      for (int64_t j = 0; j < x[2]; ++j) {
        args.outputs[0].values[n * x[2] + j] = args.inputs[0].values[Place(layer, args, n, j)];
      }
    }
  }

  void Backward(const Layer& layer, RefArgs& args) const override {
    const Shape& x = args.inputs[0].shape;
    for (int64_t n = 0; n < x[0]; ++n) {
      for (int64_t j = 0; j < x[2]; ++j) {
        args.input_gradients[0].values[Place(layer, args, n, j)] +=
            args.output_gradients[0].values[n * x[2] + j];
      }
    }
  }

 private:
  // Returns the index in x of element j of sample n's final state.
  static int64_t Place(const Layer& layer, const RefArgs& args, int64_t n, int64_t j) {
    const auto& final_state = static_cast<const FinalState&>(layer);
    const Shape& x = args.inputs[0].shape;
    int64_t last = 0;
    for (int64_t t = 0; t < x[1]; ++t) {
      const auto token = static_cast<int64_t>(args.inputs[1].values[n * x[1] + t]);
      if (token == final_state.pad()) break;
      last = t;
    }
    const bool from_behind = final_state.bidirectional() && j >= x[2] / 2;
    return (n * x[1] + (from_behind ? 0 : last)) * x[2] + j;
  }
};

DTRAIN_LAYER_CASES(
    "final_state", FinalStateReference,
    {{.name = "one pass", .yaml = "{}", .inputs = {{5, 4, 3}, {5, 4}}, .input_classes = {0, 9}},
     {.name = "two passes",
      .yaml = "{bidirectional: true}",
      .inputs = {{6, 5, 8}, {6, 5}},
      .input_classes = {0, 9}},
     {.name = "another pad",
      .yaml = "{bidirectional: true, pad: 3}",
      .inputs = {{6, 5, 2}, {6, 5}},
      .input_classes = {0, 5}},
     {.name = "one token", .yaml = "{}", .inputs = {{2, 1, 3}, {2, 1}}, .input_classes = {0, 4}}});

}  // namespace
}  // namespace dtrain
