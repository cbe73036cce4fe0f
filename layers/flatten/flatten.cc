// Flatten views [N, ...] as [N, product of the other extents], in plain order.  It has no keys and copies nothing.
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

DTRAIN_LAYER("flatten", Flatten, "merges all axes but the batch into one");

}  // namespace
}  // namespace dtrain
