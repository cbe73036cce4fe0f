// Labels: the second input of layers that compare scores with classes (softmax_cross_entropy, accuracy).
#pragma once

#include <string>

#include "framework/device/tensor.h"

namespace dtrain {

// Throws ConfigError where the labels are numbers, as a table of measured values has them: their bits would
// be taken for classes.  `type` is the layer's, for the message.
void RequireClasses(const Tensor& labels, const std::string& type);

}  // namespace dtrain
