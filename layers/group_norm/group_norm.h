// Group normalisation (Wu and He 2018; PyTorch GroupNorm).
//   x [N, C, ...];  y the same;  weight and bias [C]
// The channels of a sample are cut into `groups` groups of as many neighbours; each, with all its pixels,
// is moved to mean 0 and deviation 1 by itself (row_norm_layer.h).  `groups: 1` normalises a sample as a
// whole, as many groups as channels each channel (instance normalisation).
// InferShapes throws ShapeError when `groups` does not divide C.
#pragma once

#include "framework/nn/row_norm_layer.h"

namespace dtrain {

class GroupNorm : public RowNormLayer {
 public:
  void Configure(config::Reader& reader) override;
  NormRows RowsOf(const Shape& x) const override;

 protected:
  Shape ParamShapeFor(const Shape& x) const override;

 private:
  int64_t groups_ = 1;
};

}  // namespace dtrain
