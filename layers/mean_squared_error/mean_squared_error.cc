#include "layers/mean_squared_error/mean_squared_error.h"

namespace dtrain {

Cost MeanSquaredError::CostOf(std::span<const Shape> inputs) const {
  const auto elements = static_cast<double>(inputs[0].count());
  return {3 * elements, 3 * elements};
}

namespace {
DTRAIN_LAYER("mean_squared_error", MeanSquaredError,
             "loss for regression: the mean square of the difference to a target");
}

}  // namespace dtrain
