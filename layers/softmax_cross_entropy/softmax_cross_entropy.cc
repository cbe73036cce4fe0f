#include "layers/softmax_cross_entropy/softmax_cross_entropy.h"

#include <algorithm>

#include "framework/core/error.h"
#include "framework/nn/labels.h"

namespace dtrain {

void SoftmaxCrossEntropy::Configure(config::Reader& reader) {
  ignore_ = reader.Int("ignore", -1).Min(-1).Help("label that is ignored (padding); -1: none");
  label_smoothing_ = reader.Number("label_smoothing", 0)
                         .Min(0)
                         .Below(1)
                         .Help("share of the target that is spread over all classes");
}

std::vector<Shape> SoftmaxCrossEntropy::InferShapes(std::span<const Shape> inputs) {
  const Shape& x = inputs[0];
  const Shape& label = inputs[1];
  if (!IsLabelOf(label, x)) {
    throw ShapeError("logits of shape " + x.ToString() + " and labels of shape " +
                         label.ToString() + " do not fit; it takes [N, ..., classes] and [N, ...]",
                     "does a fully connected layer with one output a class come before it?");
  }
  if (label_classes() > x[x.rank() - 1]) throw TooFewScores(label_classes(), x);
  return {{x[0]}};
}

Cost SoftmaxCrossEntropy::CostOf(std::span<const Shape> inputs) const {
  const auto elements = static_cast<double>(inputs[0].count());
  return {20 * elements, 20 * elements};  // an exponential counts as about 16
}

namespace {
DTRAIN_LAYER("softmax_cross_entropy", SoftmaxCrossEntropy,
             "loss of class scores against a label, softmax included");
}

}  // namespace dtrain
