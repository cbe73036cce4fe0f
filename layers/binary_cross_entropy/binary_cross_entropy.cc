#include "layers/binary_cross_entropy/binary_cross_entropy.h"

namespace dtrain {

Cost BinaryCrossEntropy::CostOf(std::span<const Shape> inputs) const {
  const auto elements = static_cast<double>(inputs[0].count());
  return {36 * elements, 20 * elements};  // an exponential counts as about 16
}

namespace {
DTRAIN_LAYER("binary_cross_entropy", BinaryCrossEntropy,
             "loss of logits against yes or no (or a probability), sigmoid included");
}

}  // namespace dtrain
