#include "layers/leaky_relu/leaky_relu.h"

namespace dtrain {

void LeakyRelu::Configure(config::Reader& reader) {
  slope_ = static_cast<float>(static_cast<double>(
      reader.Number("slope", 0.01).Min(0).Max(1e6).Help("factor of numbers below 0")));
}

Cost LeakyRelu::CostOf(std::span<const Shape> inputs) const {
  const auto elements = static_cast<double>(inputs[0].count());
  return {2 * elements, 2 * elements};
}

namespace {
DTRAIN_LAYER("leaky_relu", LeakyRelu, "x above 0, slope x below");
}

}  // namespace dtrain
