#include "layers/accuracy/accuracy.h"

#include "framework/core/error.h"

namespace dtrain {

void Accuracy::Configure(config::Reader& reader) {
  top_k_ = reader.Int("top_k", 1)
               .Min(1)
               .Help("a sample is correct if its label is among the k highest scores");
}

std::vector<Shape> Accuracy::InferShapes(std::span<const Shape> inputs) {
  const Shape& x = inputs[0];
  const Shape& label = inputs[1];
  if (x.rank() != 2 || label.rank() != 1 || label[0] != x[0]) {
    throw ShapeError("scores of shape " + x.ToString() + " and labels of shape " +
                     label.ToString() + " do not fit; it takes [N, classes] and [N]");
  }
  if (top_k_ > x[1]) {
    throw ShapeError("top_k is " + std::to_string(top_k_) + " with " + std::to_string(x[1]) +
                         " classes; every sample would be right",
                     "leave this accuracy out, or lower top_k");
  }
  return {{x[0]}};
}

namespace {
DTRAIN_LAYER("accuracy", Accuracy,
             "1 for each sample whose label has one of the top_k highest scores, else 0");
}

}  // namespace dtrain
