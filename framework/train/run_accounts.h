// RunAccounts: how this rank spent its time since the start or resume of the run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "framework/core/time.h"
#include "framework/exchange/exchange.h"
#include "framework/results/rank_times.h"
#include "framework/results/summary.h"

namespace dtrain {

// TrainingClock: the training time of a run since its first step.  It stands still at boundaries, and includes the time
// from before a resume.
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
  // Returns the training time since the start or resume, without the time before it.
  double SinceStart(Nanos now) const {
    return ToSeconds((paused_at_ >= 0 ? paused_at_ : now) - begun_ - paused_);
  }

 private:
  double before_ = 0;
  Nanos begun_ = 0, paused_ = 0;
  Nanos paused_at_ = -1;  // -1: the clock runs
};

struct RunAccounts {
  Nanos begun = WallNow();
  double seconds_before = 0;  // time of the run before its resume; rank 0
  Nanos training = 0;         // time in steps, without evaluation and checkpoints
  Nanos compute = 0;          // forward and backward
  Nanos exposed = 0;          // of the last step: time spent waiting at its begin and its end
  Nanos all_exposed = 0;      // sum over all steps
  int64_t steps = 0;          // steps of this rank's worker
  int64_t samples = 0;        // samples of these steps
  std::vector<double> step_seconds;
  TrainingClock clock;
  StepWindows windows;  // since the last boundary, by the clock without the time before a resume
  ExchangeStats handed_in;  // the totals at the last boundary

  // Adds one step.  `waited` is the wait before it, `started` the begin of its computation, `computed` the end of that,
  // and `ended` the end of the step, which may include another wait.
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
  // Wall-clock time of the run.
  double seconds() const { return seconds_before + ToSeconds(WallNow() - begun); }
  // Returns the throughput of all workers, which applied `samples` samples in `training`.
  double SamplesPerSecond(int64_t samples) const {
    return static_cast<double>(samples) / std::max(ToSeconds(training), 1e-9);
  }
  // Returns this rank's report, with the waits that the windows count, too.
  RankReport Report(ExchangeStats stats) const {
    stats.exposed = all_exposed;
    return {steps, samples, compute, stats};
  }
  // Fills in `seconds` and, if this rank has trained, its speed and step times.
  void Describe(int64_t samples, Summary& summary) const {
    summary.seconds = seconds();
    if (training <= 0) return;
    summary.samples_per_second = SamplesPerSecond(samples);
    summary.step_seconds = StepSecondsOf(step_seconds);
  }
};

}  // namespace dtrain
