#include "layers/gelu/gelu.h"

namespace dtrain {

void Gelu::Configure(config::Reader& reader) {
  const std::string approximate =
      reader.String("approximate", "none")
          .OneOf({"none", "tanh"})
          .Help("none: the exact formula with erf; tanh: the approximation with tanh");
  by_tanh_ = approximate == "tanh";
}

Cost Gelu::CostOf(std::span<const Shape> inputs) const {
  const auto elements = static_cast<double>(inputs[0].count());
  return {by_tanh_ ? 25 * elements : 42 * elements, by_tanh_ ? 32 * elements : 46 * elements};
}

namespace {
DTRAIN_LAYER("gelu", Gelu, "x times the standard normal distribution function of x");
}

}  // namespace dtrain
