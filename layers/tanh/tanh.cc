#include "layers/tanh/tanh.h"

namespace dtrain {

Cost Tanh::CostOf(std::span<const Shape> inputs) const {
  const auto elements = static_cast<double>(inputs[0].count());
  return {20 * elements, 3 * elements};
}

namespace {
DTRAIN_LAYER("tanh", Tanh, "hyperbolic tangent");
}

}  // namespace dtrain
