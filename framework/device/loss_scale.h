// LossScale: the factor by which a run with `precision: fp16` multiplies its loss, so that gradients do not fall below
// fp16's range (Micikevicius et al., "Mixed Precision Training", ICLR 2018, section 3.2).
//
// The gradients are divided by it before anything else reads them.  A step that gives a gradient beyond fp16's range is
// skipped: it changes no weight and nothing of the solver's, but batch norm's running statistics have moved in its
// forward pass.
//
// The numbers are those of PyTorch's GradScaler.  That has no largest factor, though, and never gives up; a run of ours
// ends where the factor cannot shrink further, since its gradients are not finite for another reason.
#pragma once

#include "framework/device/device_code.h"

namespace dtrain {

struct LossScale {
  static constexpr float kFirst = 65536, kMost = 16777216;
  static constexpr unsigned long long kGrowsAfter = 2000;  // steps

  // A power of two, which changes no bit of a normal number; 0: nothing is scaled.
  float factor = 0;
  unsigned long long steps = 0;    // since the factor has changed
  unsigned long long skipped = 0;  // steps of the run

  static constexpr LossScale First() { return {.factor = kFirst}; }

  // Returns the scale of the step that follows one with this scale.
  DT_DEVICE constexpr LossScale Next(bool overflowed) const {
    if (overflowed) return {factor > 1 ? factor / 2 : factor, 0, skipped + 1};
    if (steps + 1 < kGrowsAfter || factor >= kMost) return {factor, steps + 1, skipped};
    return {factor * 2, 0, skipped};
  }
  friend constexpr bool operator==(const LossScale&, const LossScale&) = default;
};

}  // namespace dtrain
