// Implements embedding in plain loops, as the reference for the tests.
#include "framework/nn/layer_case.h"
#include "layers/embedding/embedding.h"

namespace dtrain {
namespace {

class EmbeddingReference : public LayerReference {
 public:
  void Forward(const Layer& layer, RefArgs& args) const override {
    const int64_t size = static_cast<const Embedding&>(layer).outputs();
    const auto& tokens = args.inputs[0].values;
    for (size_t i = 0; i < tokens.size(); ++i) {
      for (int64_t j = 0; j < size; ++j) {
        args.outputs[0].values[i * size + j] =
            args.params[0].values[static_cast<int64_t>(tokens[i]) * size + j];
      }
    }
  }

  void Backward(const Layer& layer, RefArgs& args) const override {
    const int64_t size = static_cast<const Embedding&>(layer).outputs();
    const auto& tokens = args.inputs[0].values;
    for (size_t i = 0; i < tokens.size(); ++i) {
      for (int64_t j = 0; j < size; ++j) {
        args.param_gradients[0].values[static_cast<int64_t>(tokens[i]) * size + j] +=
            args.output_gradients[0].values[i * size + j];
      }
    }
  }
};

DTRAIN_LAYER_CASES(
    "embedding", EmbeddingReference,
    {{.name = "sentences", .yaml = "{outputs: 5}", .inputs = {{4, 6}}, .input_classes = {9}},
     {.name = "one token each",
      .yaml = "{outputs: 3, weight_init: {name: gaussian, value: 0.01}}",
      .inputs = {{7, 1}},
      .input_classes = {5}},
     {.name = "most words missing",
      .yaml = "{outputs: 16, vocabulary: 300}",
      .inputs = {{3, 8}},
      .input_classes = {300}}});

}  // namespace
}  // namespace dtrain
