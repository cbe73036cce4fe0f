#include "layers/accuracy/accuracy.h"

#include "framework/core/error.h"

namespace dtrain {

std::vector<Shape> Accuracy::InferShapes(std::span<const Shape> inputs) {
  const Shape& x = inputs[0];
  const Shape& label = inputs[1];
  if (x.rank() != 2 || label.rank() != 1 || label[0] != x[0]) {
    throw ShapeError("scores of shape " + x.ToString() + " and labels of shape " +
                     label.ToString() + " do not fit; it takes [N, classes] and [N]");
  }
  return {{x[0]}};
}

namespace {
DTRAIN_LAYER("accuracy", Accuracy, "1 for each sample whose highest score is its label's");
}

}  // namespace dtrain
