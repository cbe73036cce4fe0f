#include "framework/nn/labels.h"

namespace dtrain {

bool IsLabelOf(const Shape& label, const Shape& scores) {
  bool fits = scores.rank() >= 2 && label.rank() == scores.rank() - 1;
  for (int axis = 0; fits && axis < label.rank(); ++axis) fits = label[axis] == scores[axis];
  return fits;
}

}  // namespace dtrain
