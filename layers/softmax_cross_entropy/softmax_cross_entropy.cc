#include "layers/softmax_cross_entropy/softmax_cross_entropy.h"

#include "framework/core/error.h"

namespace dtrain {

std::vector<Shape> SoftmaxCrossEntropy::InferShapes(std::span<const Shape> inputs) {
  const Shape& x = inputs[0];
  const Shape& label = inputs[1];
  if (x.rank() != 2 || label.rank() != 1 || label[0] != x[0]) {
    throw ShapeError("logits of shape " + x.ToString() + " and labels of shape " +
                         label.ToString() + " do not fit; it takes [N, classes] and [N]",
                     "does a fully connected layer with one output a class come before it?");
  }
  return {{x[0]}};
}

Cost SoftmaxCrossEntropy::CostOf(std::span<const Shape> inputs) const {
  const auto elements = static_cast<double>(inputs[0].count());
  return {20 * elements, 2 * elements};  // an exponential counts about 16
}

namespace {
DTRAIN_LAYER("softmax_cross_entropy", SoftmaxCrossEntropy,
             "loss of class scores against a label, softmax included");
}

}  // namespace dtrain
