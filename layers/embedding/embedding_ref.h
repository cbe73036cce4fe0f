// Embedding in plain loops.
#pragma once

#include "framework/nn/layer_case.h"
#include "layers/embedding/embedding.h"

namespace dtrain {

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

}  // namespace dtrain
