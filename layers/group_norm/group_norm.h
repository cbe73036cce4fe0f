// Group normalisation (Wu and He 2018; PyTorch GroupNorm).
//   x [N, C, ...];  y the same;  weight and bias [C]
// The channels of a sample are divided into `groups` groups of C / groups adjacent channels.  Each group, over all its
// pixels, is normalised to mean 0 and deviation 1 (row_norm_layer.h).  `groups: 1` normalises a sample as a whole;
// `groups` = C normalises each channel (instance normalisation).
// InferShapes throws ShapeError if `groups` does not divide C.
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
