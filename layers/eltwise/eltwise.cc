#include "layers/eltwise/eltwise.h"

#include "framework/core/error.h"

namespace dtrain {

void Eltwise::Configure(config::Reader& reader) {
  [[maybe_unused]] const std::string operation =
      reader.String("operation", "sum").OneOf({"sum"}).Help("how two elements become one");
}

std::vector<Shape> Eltwise::InferShapes(std::span<const Shape> inputs) {
  if (inputs[0] != inputs[1]) {
    throw ShapeError("inputs of shapes " + inputs[0].ToString() + " and " + inputs[1].ToString() +
                     " cannot be added");
  }
  return {inputs[0]};
}

Cost Eltwise::CostOf(std::span<const Shape> inputs) const {
  const auto elements = static_cast<double>(inputs[0].count());
  return {elements, elements};
}

namespace {
DTRAIN_LAYER("eltwise", Eltwise, "sum of two tensors of one shape (Caffe Eltwise, PyTorch +)");
}

}  // namespace dtrain
