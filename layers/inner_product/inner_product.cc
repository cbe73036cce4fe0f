#include "layers/inner_product/inner_product.h"

#include "framework/core/error.h"
#include "framework/nn/initializer.h"

namespace dtrain {

void InnerProduct::Configure(config::Reader& reader) {
  outputs_ =
      reader.Int("outputs", 1).Required().Min(1).Max(kLargestExtent).Help("number of outputs");
  axis_ = reader.Int("axis", 1)
              .Min(1)
              .Max(Shape::kMaxRank - 1)
              .Help("first of the axes that are flattened into features; axes before it are kept");
  has_bias_ = reader.Bool("bias", true).Help("add a learned constant to each output");
  weight_init_ =
      ReadInitSpec(reader.Section("weight_init", "initial values of the weights"), {"xavier", 0});
  bias_init_ =
      ReadInitSpec(reader.Section("bias_init", "initial values of the bias"), {"constant", 0});
}

std::vector<Shape> InnerProduct::InferShapes(std::span<const Shape> inputs) {
  const Shape& x = inputs[0];
  const auto axis = static_cast<int>(axis_);
  if (x.rank() <= axis) {
    throw ShapeError("an input of shape " + x.ToString() + " has no features; it takes [N, ...]",
                     axis_ > 1 ? "the key axis is " + std::to_string(axis_) : "");
  }
  inputs_ = x.CountFrom(axis);
  std::vector<int64_t> extents;
  for (int kept = 0; kept < axis; ++kept) extents.push_back(x[kept]);
  extents.push_back(outputs_);
  return {Shape(extents)};
}

std::vector<ParamSpec> InnerProduct::Params() const {
  std::vector<ParamSpec> params;
  params.push_back({"weight", {outputs_, inputs_}, weight_init_, inputs_, outputs_});
  if (has_bias_) params.push_back({"bias", {outputs_}, bias_init_, inputs_, outputs_});
  return params;
}

Cost InnerProduct::CostOf(std::span<const Shape> inputs) const {
  const double forward = 2.0 * static_cast<double>(inputs[0].count() * outputs_);
  return {forward, 2 * forward};
}

namespace {
DTRAIN_LAYER("inner_product", InnerProduct, "fully connected: y = x w^T + b");
}

}  // namespace dtrain
