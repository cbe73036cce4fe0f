#include "framework/nn/labels.h"

#include "framework/core/error.h"

namespace dtrain {

bool IsLabelOf(const Shape& label, const Shape& scores) {
  bool fits = scores.rank() >= 2 && label.rank() == scores.rank() - 1;
  for (int axis = 0; fits && axis < label.rank(); ++axis) fits = label[axis] == scores[axis];
  return fits;
}

void RequireClasses(const Tensor& labels, const std::string& type) {
  if (labels.dtype == DType::kI32) return;
  throw ConfigError(type + " compares scores with classes, but the labels are numbers",
                    "take the loss mean_squared_error, and no accuracy, for numbers; or a data set "
                    "of classes");
}

}  // namespace dtrain
