// Labels: the second input of layers that compare scores with classes (softmax_cross_entropy, accuracy).
#pragma once

#include <string>

#include "framework/device/tensor.h"

namespace dtrain {

// Throws ConfigError where the labels are numbers, as a table of measured values has them: their bits would
// be taken for classes.  `type` is the layer's, for the message.
void RequireClasses(const Tensor& labels, const std::string& type);

// Whether `label` is `scores` without its last axis, of the classes: [N, ...] and [N, ..., classes].
bool IsLabelOf(const Shape& label, const Shape& scores);

}  // namespace dtrain
