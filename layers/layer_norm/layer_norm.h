// Layer normalisation over the last `axes` axes (Ba, Kiros and Hinton 2016; PyTorch LayerNorm, whose normalized_shape
// is the extents of these axes).
//   x [N, ...];  y the same;  weight and bias have the shape of x's last axes, with `axes: 3` that of a whole image
// Each slice over the last axes is normalised to mean 0 and deviation 1 (row_norm_layer.h).  InferShapes throws
// ShapeError if the batch axis would be among them.
#pragma once

#include "framework/nn/row_norm_layer.h"

namespace dtrain {

class LayerNorm : public RowNormLayer {
 public:
  void Configure(config::Reader& reader) override;
  NormRows RowsOf(const Shape& x) const override;

  int64_t axes() const { return axes_; }

 protected:
  Shape ParamShapeFor(const Shape& x) const override;

 private:
  int64_t axes_ = 1;
};

}  // namespace dtrain
