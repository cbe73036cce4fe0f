// Clipping by global norm: the whole gradient is shortened to `clip_norm` where it is longer
// (PyTorch's clip_grad_norm_).
//
//   args.gradient_scale = ClipScale(config.clip_norm, SumOfSquares(gradient, layout.size()));
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// In double, in a fixed order: the same bits on every instruction set.
double SumOfSquares(const float* x, int64_t count, Isa isa = CpuIsa());

// min(1, clip_norm / norm); 1 when clip_norm is 0.
float ClipScale(double clip_norm, double sum_of_squares);

}  // namespace dtrain
