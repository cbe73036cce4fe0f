// GradientSource: who computes gradients in a numeric simulation.  One engine serves all virtual
// workers; without one a simulation is a ghost, of sizes only.
#pragma once

#include <cstdint>

#include "framework/device/blob.h"
#include "framework/strategies/report.h"

namespace dtrain {

class GradientSource {
 public:
  virtual ~GradientSource() = default;
  // Worker `worker`'s `step`-th mini-batch (counted from 0) at these weights.
  virtual StepReport Compute(int worker, int64_t step, const Blob& weights, float* gradients) = 0;
};

}  // namespace dtrain
