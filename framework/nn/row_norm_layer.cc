#include "framework/nn/row_norm_layer.h"

#include "framework/core/error.h"

namespace dtrain {

void RowNormLayer::Configure(config::Reader& reader) {
  eps_ = reader.Number("eps", 1e-5)
             .Above(0)
             .Max(1e6)
             .Help("added to the variance, against division by 0");
  affine_ = reader.Bool("affine", true).Help("scale by a weight and add a bias, both learned");
}

std::vector<Shape> RowNormLayer::InferShapes(std::span<const Shape> inputs) {
  const Shape& x = inputs[0];
  const Shape shape = ParamShapeFor(x);
  if (RowsOf(x).size() == 1) {
    throw ShapeError("an input of shape " + x.ToString() +
                     " leaves one number to normalise at a time: it would always become 0");
  }
  if (affine_ && param_shape_.rank() > 0 && param_shape_ != shape) {
    throw ShapeError(
        "weights of shape " + param_shape_.ToString() + " do not fit the input " + x.ToString(),
        "normalise no axis that is as long as the sentences, or set affine: false");
  }
  param_shape_ = shape;
  return {x};
}

std::vector<ParamSpec> RowNormLayer::Params() const {
  if (!affine_) return {};
  return {{"weight", param_shape_, {"constant", 1}}, {"bias", param_shape_, {"constant", 0}}};
}

// Counts these operations per element: mean 1, variance 3, y 3 forward; two sums 5, dx 6 backward.
Cost RowNormLayer::CostOf(std::span<const Shape> inputs) const {
  const auto elements = static_cast<double>(inputs[0].count());
  return {7 * elements, 11 * elements};
}

}  // namespace dtrain
