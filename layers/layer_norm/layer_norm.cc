#include "layers/layer_norm/layer_norm.h"

#include "framework/core/error.h"

namespace dtrain {

void LayerNorm::Configure(config::Reader& reader) {
  axes_ = reader.Int("axes", 1)
              .Min(1)
              .Max(Shape::kMaxRank - 1)
              .Help("how many of the last axes are normalised together; 3: a whole image");
  RowNormLayer::Configure(reader);
}

Shape LayerNorm::ParamShapeFor(const Shape& x) const {
  if (x.rank() <= axes_) {
    throw ShapeError("the last " + std::to_string(axes_) + " axes of an input of shape " +
                         x.ToString() + " are not those of a sample",
                     "axes: " + std::to_string(x.rank() - 1) + " at most");
  }
  const std::vector<int64_t> extents = x.extents();
  return Shape(std::span(extents).last(static_cast<size_t>(axes_)));
}

NormRows LayerNorm::RowsOf(const Shape& x) const {
  const int64_t size = x.CountFrom(x.rank() - static_cast<int>(axes_));
  return {x.count() / size, 1, size, 1};
}

namespace {
DTRAIN_LAYER("layer_norm", LayerNorm,
             "the last axes normalised to mean 0, deviation 1, then scaled (PyTorch LayerNorm)");
}

}  // namespace dtrain
