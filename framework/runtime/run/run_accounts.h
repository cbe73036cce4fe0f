// RunAccounts: where the time of a run went on this rank, since its start or resume.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/core/time.h"
#include "framework/runtime/results/summary.h"

namespace dtrain {

struct RunAccounts {
  Nanos begun = WallNow();
  Nanos training = 0;  // without evaluation and checkpoints
  Nanos compute = 0;   // forward and backward
  Nanos exposed = 0;   // of the last step: what its begin and its end waited for others
  int64_t steps = 0;   // of this rank's worker
  std::vector<double> step_seconds;

  // One step: `waited` to begin, then computed, then ended, which may have been waiting again.
  void AddStep(Nanos waited, Nanos started, Nanos computed, Nanos ended);
  double seconds() const { return ToSeconds(WallNow() - begun); }
  // Applied by all workers, of which `samples` in the time accounted for.
  double SamplesPerSecond(int64_t samples) const;
  // Fills `seconds` and, where this rank has trained, speed and step times.
  void Describe(int64_t samples, Summary& summary) const;
};

}  // namespace dtrain
