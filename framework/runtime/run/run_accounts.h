// RunAccounts: where the time of a run went on this rank, since its start or resume.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "framework/core/time.h"
#include "framework/exchange/exchange.h"
#include "framework/runtime/results/rank_times.h"
#include "framework/runtime/results/summary.h"

namespace dtrain {

// TrainingClock: the time of a run from its first step on, without what it spends at a boundary, and with
// what it took before it was resumed.
class TrainingClock {
 public:
  void Start(Nanos now, double seconds_before) {
    begun_ = now;
    before_ = seconds_before;
  }
  void Pause(Nanos now) { paused_at_ = now; }
  void Continue(Nanos now) {
    paused_ += now - paused_at_;
    paused_at_ = -1;
  }
  double At(Nanos now) const { return before_ + SinceStart(now); }
  // Without what it took before.
  double SinceStart(Nanos now) const {
    return ToSeconds((paused_at_ >= 0 ? paused_at_ : now) - begun_ - paused_);
  }

 private:
  double before_ = 0;
  Nanos begun_ = 0, paused_ = 0;
  Nanos paused_at_ = -1;  // -1: it runs
};

struct RunAccounts {
  Nanos begun = WallNow();
  double seconds_before = 0;  // of the run, before it was resumed; rank 0
  Nanos training = 0;         // without evaluation and checkpoints
  Nanos compute = 0;          // forward and backward
  Nanos exposed = 0;          // of the last step: what its begin and its end waited for others
  Nanos all_exposed = 0;      // of all steps
  int64_t steps = 0;          // of this rank's worker
  int64_t samples = 0;        // of these
  std::vector<double> step_seconds;
  TrainingClock clock;
  StepWindows windows;  // since the last boundary, on the clock without what was before a resume
  ExchangeStats handed_in;  // at the last boundary

  // One step: `waited` to begin, then computed, then ended, which may have been waiting again.
  void AddStep(int64_t step_samples, Nanos waited, Nanos started, Nanos computed, Nanos ended) {
    const Nanos step = waited + ended - started;
    exposed = waited + ended - computed;
    all_exposed += exposed;
    compute += computed - started;
    training += step;
    ++steps;
    samples += step_samples;
    step_seconds.push_back(ToSeconds(step));
    windows.Add(clock.SinceStart(ended), ToSeconds(computed - started), ToSeconds(exposed));
  }
  double seconds() const { return seconds_before + ToSeconds(WallNow() - begun); }  // of the run
  // Applied by all workers, of which `samples` in the time accounted for.
  double SamplesPerSecond(int64_t samples) const {
    return static_cast<double>(samples) / std::max(ToSeconds(training), 1e-9);
  }
  // With the same waits as in the windows.
  RankReport Report(ExchangeStats stats) const {
    stats.exposed = all_exposed;
    return {steps, samples, compute, stats};
  }
  // Fills `seconds` and, where this rank has trained, speed and step times.
  void Describe(int64_t samples, Summary& summary) const {
    summary.seconds = seconds();
    if (training <= 0) return;
    summary.samples_per_second = SamplesPerSecond(samples);
    summary.step_seconds = StepSecondsOf(step_seconds);
  }
};

}  // namespace dtrain
