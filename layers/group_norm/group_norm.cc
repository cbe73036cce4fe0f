#include "layers/group_norm/group_norm.h"

#include "framework/core/error.h"

namespace dtrain {

void GroupNorm::Configure(config::Reader& reader) {
  groups_ = reader.Int("groups", 1)
                .Required()
                .Min(1)
                .Max(kLargestExtent)
                .Help("groups of channels, each normalised by itself");
  RowNormLayer::Configure(reader);
}

Shape GroupNorm::ParamShapeFor(const Shape& x) const {
  if (x.rank() < 2) {
    throw ShapeError("an input of shape " + x.ToString() +
                     " has no channels to normalise; it takes [N, C, ...]");
  }
  if (x[1] % groups_ != 0) {
    throw ShapeError("the " + std::to_string(x[1]) + " channels of the input " + x.ToString() +
                         " cannot be divided into " + std::to_string(groups_) + " groups",
                     "the number of channels must be divisible by groups");
  }
  return {x[1]};
}

NormRows GroupNorm::RowsOf(const Shape& x) const {
  return {x[0] * groups_, groups_, x[1] / groups_, x.CountFrom(2)};
}

namespace {
DTRAIN_LAYER(
    "group_norm", GroupNorm,
    "groups of channels normalised to mean 0, deviation 1, then scaled (PyTorch GroupNorm)");
}

}  // namespace dtrain
