#include "layers/batch_norm/batch_norm.h"

#include "framework/core/error.h"

namespace dtrain {

void BatchNorm::Configure(config::Reader& reader) {
  eps_ = reader.Number("eps", 1e-5).Above(0).Help("added to the variance, against division by 0");
  momentum_ = reader.Number("momentum", 0.1)
                  .Min(0)
                  .Max(1)
                  .Help("share of the batch's statistics in the new running ones");
}

std::vector<Shape> BatchNorm::InferShapes(std::span<const Shape> inputs) {
  const Shape& x = inputs[0];
  if (x.rank() != 4 && x.rank() != 2) {
    throw ShapeError("an input of shape " + x.ToString() +
                     " has no channels to normalise; it takes [N, C, H, W] or [N, C]");
  }
  channels_ = x[1];
  return {x};
}

std::vector<ParamSpec> BatchNorm::Params() const {
  return {{"weight", {channels_}, {"constant", 1}}, {"bias", {channels_}, {"constant", 0}}};
}

std::vector<StateSpec> BatchNorm::State() const {
  return {{"running_mean", {channels_}, 0}, {"running_var", {channels_}, 1}};
}

// Forward: mean 1, variance 3, y 3 operations an element; backward: two sums 4, dx 6.
Cost BatchNorm::CostOf(std::span<const Shape> inputs) const {
  const auto elements = static_cast<double>(inputs[0].count());
  return {7 * elements, 10 * elements};
}

namespace {
DTRAIN_LAYER("batch_norm", BatchNorm,
             "channels moved to mean 0, deviation 1, then scaled (PyTorch BatchNorm2d)");
}

}  // namespace dtrain
