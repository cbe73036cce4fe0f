// Layer normalisation (Ba, Kiros and Hinton 2016; PyTorch LayerNorm over the last `axes` axes, its
// normalized_shape being their extents).
//   x [N, ...];  y the same;  weight and bias: the last axes of x, which with `axes: 3` is a whole image
// Every run of the last axes is moved to mean 0 and deviation 1 by itself (row_norm_layer.h).
// InferShapes throws ShapeError where the batch axis would be among them.
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
