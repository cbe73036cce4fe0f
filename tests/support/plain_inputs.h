// The common inputs of a run and of the plain loop (plain_loop.h): weights and gradients by formula, and solver rules.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/golden_inputs.h"
#include "tests/support/plain_loop.h"

namespace dtrain::plain {

inline std::vector<float> InitialWeights(size_t size) {
  std::vector<float> weights(size);
  for (size_t i = 0; i < size; ++i) weights[i] = golden::Unit(7, i) / 2;
  return weights;
}

// Returns the gradient of a worker that has `own` of the `all` terms of the mean.  It depends on every bit of the
// weights.  Every third gradient is short, so that no rule below clips it.
inline std::vector<float> GradientOf(int worker, int64_t step, const float* weights, size_t size,
                                     int64_t own = 1, int64_t all = 1) {
  const float length = step % 3 == 1 ? 0.0625f : 1.0f;
  const float part = static_cast<float>(own) / static_cast<float>(all);
  const uint64_t stream = 1000 * static_cast<uint64_t>(worker + 1) + static_cast<uint64_t>(step);
  std::vector<float> gradient(size);
  for (size_t i = 0; i < size; ++i) {
    gradient[i] = (0.25f * weights[i] + length * golden::Unit(stream, i)) * part;
  }
  return gradient;
}

// The rate changes within an epoch, so that a schedule by whole epochs would give other rates.
inline Rule Steps() {
  return {.weight_decay = 0.01,
          .schedule = "step",
          .every = 0.7,
          .factor = 0.3,
          .lr_scaling = "linear"};
}

inline Rule ClippedCosine() {
  return {.nesterov = true,
          .clip_norm = 5,
          .schedule = "cosine",
          .to = 0.1,
          .warmup_epochs = 1.3,
          .lr_scaling = "sqrt"};
}

inline Rule Adam(double clip_norm = 0) {
  return {.name = "adam",
          .lr = 0.01,
          .weight_decay = 0.02,
          .clip_norm = clip_norm,
          .schedule = "cosine",
          .warmup_epochs = 1.3,
          .lr_scaling = "linear"};
}

}  // namespace dtrain::plain
