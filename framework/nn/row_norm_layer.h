// The base class of layer_norm and group_norm: each row of a sample is normalised to mean 0 and deviation 1, then
// scaled.
//
//   x [N, ...] seen as [N, G, K, P]: G rows of K channels of P pixels a sample;  y the same
//   y = weight[g,k] (x - mean) / sqrt(var + eps) + bias[g,k],  mean and (biased) variance of the row
//
// Training and evaluation compute the same, and a sample does not depend on the others.  `affine: false`
// leaves weight and bias out.  Backward, with z = (x - mean) / sqrt(var + eps) and d = dy weight:
//   dx = (d - mean(d) - z mean(d z)) / sqrt(var + eps),  dweight = sum dy z,  dbias = sum dy
#pragma once

#include "framework/nn/layer.h"

namespace dtrain {

// A batch seen as rows: row r is [channels, pixels], its channel k has weight (r % groups) channels + k.
struct NormRows {
  int64_t rows, groups, channels, pixels;

  constexpr int64_t size() const { return channels * pixels; }
  constexpr int64_t parameters() const { return groups * channels; }
  // Return the row and the parameter of element i of the batch.
  constexpr int64_t RowOf(int64_t i) const { return i / size(); }
  constexpr int64_t ParameterOf(int64_t i) const { return i / pixels % parameters(); }
};

class RowNormLayer : public Layer {
 public:
  void Configure(config::Reader& reader) override;
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  std::vector<ParamSpec> Params() const override;
  Cost CostOf(std::span<const Shape> inputs) const override;

  virtual NormRows RowsOf(const Shape& x) const = 0;

  double eps() const { return eps_; }
  bool affine() const { return affine_; }
  const Shape& param_shape() const { return param_shape_; }  // after InferShapes

 protected:
  // Returns the shape of weight and bias for an input whose rank is valid; throws ShapeError for other inputs.
  virtual Shape ParamShapeFor(const Shape& x) const = 0;

 private:
  double eps_ = 1e-5;
  bool affine_ = true;
  Shape param_shape_;
};

}  // namespace dtrain
