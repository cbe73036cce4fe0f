// Flatten: [N, ...] seen as [N, product of the rest], in plain order; no keys, no arithmetic.
#pragma once

#include "framework/nn/layer.h"

namespace dtrain {

class Flatten : public Layer {
 public:
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override {
    return {{inputs[0][0], inputs[0].CountFrom(1)}};
  }
  bool is_view() const override { return true; }
};

}  // namespace dtrain
