#include "layers/concat/concat.h"

#include "framework/core/error.h"

namespace dtrain {

std::vector<Shape> Concat::InferShapes(std::span<const Shape> inputs) {
  Shape y = inputs[0];
  if (y.rank() < 2) throw ShapeError("an input of shape " + y.ToString() + " has no axis to join");
  const int last = y.rank() - 1;
  for (const Shape& x : inputs.subspan(1)) {
    Shape like = x;
    if (x.rank() == y.rank()) like[last] = inputs[0][last];
    if (like != inputs[0]) {
      throw ShapeError("inputs of shapes " + inputs[0].ToString() + " and " + x.ToString() +
                       " cannot stand side by side: they may differ in the last axis only");
    }
    y[last] += x[last];
  }
  return {y};
}

namespace {
DTRAIN_LAYER("concat", Concat, "puts tensors side by side along the last axis");
}

}  // namespace dtrain
