#include "layers/eltwise/eltwise.h"

#include <fmt/format.h>

#include "framework/core/error.h"

namespace dtrain {
namespace {

constexpr size_t kMostInputs = UINT16_MAX;  // a maximum's input index has 16 bits

}  // namespace

void Eltwise::Configure(config::Reader& reader) {
  const std::string operation = reader.String("operation", "sum")
                                    .OneOf({"sum", "product", "max"})
                                    .Help("how elements at the same index are combined");
  operation_ = operation == "product" ? EltwiseOperation::kProduct
               : operation == "max"   ? EltwiseOperation::kMax
                                      : EltwiseOperation::kSum;
}

std::vector<Shape> Eltwise::InferShapes(std::span<const Shape> inputs) {
  if (inputs.size() > kMostInputs) {
    throw ShapeError(
        fmt::format("eltwise takes {} inputs at most, not {}", kMostInputs, inputs.size()));
  }
  static constexpr const char* kWords[] = {"added", "multiplied", "compared"};
  for (const Shape& x : inputs.subspan(1)) {
    if (x == inputs[0]) continue;
    throw ShapeError(fmt::format("inputs of shapes {} and {} cannot be {}", inputs[0].ToString(),
                                 x.ToString(), kWords[static_cast<int>(operation_)]));
  }
  return {inputs[0]};
}

// With n inputs there are n - 1 operations per element; the gradients of a product take as many for each input.
Cost Eltwise::CostOf(std::span<const Shape> inputs) const {
  const double elements = static_cast<double>(inputs[0].count());
  const double inputs_count = static_cast<double>(inputs.size());
  const double forward = elements * (inputs_count - 1);
  return {forward, operation_ == EltwiseOperation::kProduct ? forward * inputs_count : forward};
}

DTRAIN_LAYER(
    "eltwise", Eltwise,
    "elementwise sum, product or maximum of tensors of one shape (Caffe Eltwise, PyTorch +)");

}  // namespace dtrain
