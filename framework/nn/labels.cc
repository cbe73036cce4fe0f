#include "framework/nn/labels.h"

#include <fmt/format.h>

namespace dtrain {

bool IsLabelOf(const Shape& label, const Shape& scores) {
  bool fits = scores.rank() >= 2 && label.rank() == scores.rank() - 1;
  for (int axis = 0; fits && axis < label.rank(); ++axis) fits = label[axis] == scores[axis];
  return fits;
}

TooFewScores::TooFewScores(int64_t of_classes, const Shape& scores)
    : ShapeError(fmt::format("the labels are of {} classes, the scores {} of {}", of_classes,
                             scores.ToString(), scores[scores.rank() - 1]),
                 "give the layer before it one output for each class of the data set"),
      classes(of_classes) {}

}  // namespace dtrain
