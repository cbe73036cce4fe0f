// Labels: the second input of layers that compare scores with classes (softmax_cross_entropy, accuracy).
#pragma once

#include "framework/device/shape.h"

namespace dtrain {

// Whether `label` is `scores` without its last axis, of the classes: [N, ...] and [N, ..., classes].
bool IsLabelOf(const Shape& label, const Shape& scores);

}  // namespace dtrain
