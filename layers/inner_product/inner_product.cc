#include "layers/inner_product/inner_product.h"

#include "framework/core/error.h"
#include "framework/nn/initializer.h"

namespace dtrain {

void InnerProduct::Configure(config::Reader& reader) {
  outputs_ = reader.Int("outputs", 1).Required().Min(1).Help("length of the output of a sample");
  has_bias_ = reader.Bool("bias", true).Help("add a learned constant to each output");
  weight_init_ =
      ReadInitSpec(reader.Section("weight_init", "how the weights start"), {"xavier", 0});
  bias_init_ = ReadInitSpec(reader.Section("bias_init", "how the bias starts"), {"constant", 0});
}

std::vector<Shape> InnerProduct::InferShapes(std::span<const Shape> inputs) {
  const Shape& x = inputs[0];
  if (x.rank() < 2) {
    throw ShapeError("an input of shape " + x.ToString() + " has no features; it takes [N, ...]");
  }
  inputs_ = x.CountFrom(1);
  return {{x[0], outputs_}};
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
