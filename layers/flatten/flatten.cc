// Flatten: [N, ...] seen as [N, product of the rest], in plain order; no keys, no arithmetic.
#include "framework/nn/layer.h"

namespace dtrain {
namespace {

class Flatten : public Layer {
 public:
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override {
    return {{inputs[0][0], inputs[0].CountFrom(1)}};
  }
  bool is_view() const override { return true; }
};

DTRAIN_LAYER("flatten", Flatten, "all axes but the batch become one");

}  // namespace
}  // namespace dtrain
