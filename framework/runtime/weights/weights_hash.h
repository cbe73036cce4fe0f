// weights_sha256 of summary.json: equal exactly when two models are equal to the bit.
#pragma once

#include <string>

#include "framework/runtime/weights/checkpoint.h"

namespace dtrain {

// SHA-256 over all parameters and batch-norm statistics in name order, each as little-endian fp32
// in plain order.  Arenas as in CheckpointView; `state` may be null when layout.state is empty.
std::string WeightsSha256(const ModelLayout& layout, const float* weights, const float* state);

}  // namespace dtrain
