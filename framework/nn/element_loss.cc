#include "framework/nn/element_loss.h"

#include <fmt/format.h>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/nn/labels.h"

namespace dtrain {
std::vector<Shape> ElementLoss::InferShapes(std::span<const Shape> inputs) {
  const Shape &x = inputs[0], &target = inputs[1];
  const bool less_deep = IsLabelOf(target, x);
  if (x.rank() < 1 || (x != target && !less_deep)) {
    throw ShapeError(fmt::format("scores of shape {} and a target of shape {} do not fit",
                                 x.ToString(), target.ToString()),
                     "give the layer before it one output for each number of the target");
  }
  const int64_t scores = less_deep ? x[x.rank() - 1] : 1;
  if (scores == 1) {
    if (takes_shares_ && classes_ > 2 && less_deep) throw TooFewScores(classes_, x);
    if (takes_shares_ && classes_ > 2) {
      throw ShapeError(
          fmt::format("the target is of {} classes, each score is a yes or no", classes_),
          "give the layer before it one output for each class of the data set");
    }
  } else if (classes_ == 0) {
    throw ShapeError(fmt::format("scores of shape {} and a target of shape {} fit only where the "
                                 "target is of classes",
                                 x.ToString(), target.ToString()),
                     "give the layer before it one output for each number of the target");
  } else if (classes_ > scores) {
    throw TooFewScores(classes_, x);
  }
  return {{x[0]}};
}

void ElementLoss::CheckTargets(const Tensor& scores, const Tensor& target, int64_t first_position,
                               uint64_t step) const {
  const int64_t classes = scores.shape.count() / target.shape.count();
  const bool integers = target.dtype == DType::kI32;
  DT_CHECK(integers || classes == 1) << classes << " scores for a number";
  if (classes == 1 && !takes_shares_) return;
  const double last = classes == 1 ? 1 : static_cast<double>(classes - 1);
  for (int64_t i = 0; i < target.shape.count(); ++i) {
    const double value = integers ? target.i32()[i] : static_cast<double>(target.f32()[i]);
    if (value >= 0 && value <= last) continue;
    throw DataError(
        fmt::format("target {} at position {} of the batch (step {}) is outside [0, {}]", value,
                    first_position + i / target.shape.CountFrom(1), step, last),
        classes == 1 ? "this loss takes classes 0 and 1, or probabilities"
                     : "has the model one output for each class of the data set?");
  }
}

}  // namespace dtrain
