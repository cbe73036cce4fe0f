// Concatenates tensors along the last axis (PyTorch cat(dim=-1), Caffe Concat).
//   x_i [N, ..., C_i], any number of inputs, whose shapes may differ in C_i only;  y [N, ..., sum of C_i]
// InferShapes throws ShapeError if another axis differs.
#include "framework/core/error.h"
#include "framework/nn/layer.h"

namespace dtrain {
namespace {

class Concat : public Layer {
 public:
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  int input_count() const override { return kAnyInputs; }
};

std::vector<Shape> Concat::InferShapes(std::span<const Shape> inputs) {
  Shape y = inputs[0];
  if (y.rank() < 2) throw ShapeError("an input of shape " + y.ToString() + " has no axis to join");
  const int last = y.rank() - 1;
  for (const Shape& x : inputs.subspan(1)) {
    Shape like = x;
    if (x.rank() == y.rank()) like[last] = inputs[0][last];
    if (like != inputs[0]) {
      throw ShapeError("inputs of shapes " + inputs[0].ToString() + " and " + x.ToString() +
                       " cannot be concatenated: they may differ in the last axis only");
    }
    y[last] += x[last];
  }
  return {y};
}

DTRAIN_LAYER("concat", Concat, "puts tensors side by side along the last axis");

}  // namespace
}  // namespace dtrain
