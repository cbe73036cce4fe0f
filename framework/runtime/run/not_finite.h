// Where the first NaN or infinity of a model is, for the message of a run that has diverged.
#pragma once

#include <string>

#include "framework/core/layout.h"

namespace dtrain {

// "the gradient of conv1.weight", "the weights of fc3.bias", or "the loss" where both arenas are
// finite; in the order of the backward pass.  `gradients` may be null: this rank has none.
std::string FirstNotFinite(const ArenaLayout& layout, const float* weights, const float* gradients);

}  // namespace dtrain
