// A source of gradients that computes a step when it begins.
#pragma once

#include <map>

#include "framework/sim/simulation.h"

namespace dtrain {

class SourceAtOnce : public GradientSource {
 public:
  virtual StepReport Compute(int worker, int64_t step, const Blob& weights, float* gradients) = 0;

  int64_t Begin(int worker, int64_t step, const Blob& weights, float* gradients) final {
    return (reports_[worker] = Compute(worker, step, weights, gradients)).samples;
  }
  StepReport End(int worker) final { return reports_.at(worker); }

 private:
  std::map<int, StepReport> reports_;
};

}  // namespace dtrain
