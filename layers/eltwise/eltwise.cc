// Elementwise combination of two tensors of one shape (Caffe Eltwise; PyTorch's +): the end of a
// residual block.
//   sum   y = a + b;  both gradients are dy
// InferShapes throws ShapeError when the shapes differ.
#include "framework/core/error.h"
#include "framework/nn/layer.h"

namespace dtrain {
namespace {

class Eltwise : public Layer {
 public:
  void Configure(config::Reader& reader) override;
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  Cost CostOf(std::span<const Shape> inputs) const override;
  int input_count() const override { return 2; }
};

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

DTRAIN_LAYER("eltwise", Eltwise, "sum of two tensors of one shape (Caffe Eltwise, PyTorch +)");

}  // namespace
}  // namespace dtrain
