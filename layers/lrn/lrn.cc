#include "layers/lrn/lrn.h"

#include <algorithm>

#include "framework/core/error.h"

namespace dtrain {

void Lrn::Configure(config::Reader& reader) {
  constexpr double kMost = 1e6;
  local_size_ =
      reader.Int("local_size", 5)
          .Min(1)
          .Max(kLargestWindow)
          .Help("number of channels in the window around a channel, which includes it; odd");
  alpha_ = reader.Number("alpha", 1)
               .Min(0)
               .Max(kMost)
               .Help("factor of the mean square of these channels");
  beta_ = reader.Number("beta", 0.75).Min(0).Max(kMost).Help("exponent");
  k_ = reader.Number("k", 1).Above(0).Max(kMost).Help("added to the mean square");
  if (local_size_ % 2 == 0) {
    reader.AddError("local_size",
                    "local_size " + std::to_string(local_size_) + " has no channel in its middle",
                    "take an odd number");
  }
}

std::vector<Shape> Lrn::InferShapes(std::span<const Shape> inputs) {
  if (inputs[0].rank() < 2) {
    throw ShapeError("an input of shape " + inputs[0].ToString() +
                     " has no channels to normalise; it takes [N, C, ...]");
  }
  return {inputs[0]};
}

// A power counts as about 16 operations.
Cost Lrn::CostOf(std::span<const Shape> inputs) const {
  const auto elements = static_cast<double>(inputs[0].count());
  const auto window = static_cast<double>(std::min(local_size_, 2 * inputs[0][1] - 1));
  return {(2 * window + 20) * elements, (window + 25) * elements};
}

LrnFactors Lrn::factors() const {
  return {(local_size_ - 1) / 2, static_cast<float>(k_),
          static_cast<float>(alpha_ / static_cast<double>(local_size_)), static_cast<float>(beta_)};
}

namespace {
DTRAIN_LAYER("lrn", Lrn,
             "each channel divided by a power of its neighbours' mean square (Caffe LRN)");
}

}  // namespace dtrain
