// RunPosition: the position of a run as this rank knows it, and the loss so far; and which actions (evaluation,
// checkpoint) are due at a boundary.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/checkpoint/checkpoint.h"
#include "framework/exchange/quiescence.h"
#include "framework/results/summary.h"
#include "framework/setup/run_config.h"
#include "framework/strategies/report.h"

namespace dtrain {

class RunPosition {
 public:
  RunPosition() = default;
  RunPosition(const BoundarySchedule& rule, const TrainingPosition& start)
      : rule_(rule), first_(start), now_(start) {}

  void MoveTo(int64_t samples_applied);
  // Ends the run at the present position, before its last epoch.
  void EndHere() {
    rule_.last_samples = now_.samples_applied;
    rule_.ended_early = true;
  }
  // Synchronous runs: adds a step that all workers have ended.
  void Add(const StepOutcome& outcome);
  // Asynchronous runs: takes over the progress that rank 0 has received so far.  Returns false if nothing is new.
  bool UpdateProgress(const Quiescence::Progress& progress);

  const BoundarySchedule& rule() const { return rule_; }
  // Returns the position at which this process began the run.
  const TrainingPosition& first() const { return first_; }
  const TrainingPosition& now() const { return now_; }
  double loss() const { return loss_; }  // loss of the last step, mean over its samples
  // Returns the number of samples applied since `first()`.
  int64_t samples() const { return now_.samples_applied - first_.samples_applied; }
  // Epochs since the beginning of the run, with fractions.
  double epochs() const { return EpochsOf(now_.samples_applied); }
  // Epochs at the beginning of the last global batch, which may be a small one at the end of an epoch.  Learning-rate
  // schedules follow it.
  double EpochsBeforeLastBatch() const { return EpochsOf(before_); }
  int64_t last_step() const { return rule_.StepsOf(rule_.last_samples); }
  // Fills in the epochs and steps done and, after a resume, the step at which it began.
  void Describe(Summary& summary) const;
  bool RunEnds() const { return now_.samples_applied >= rule_.last_samples; }
  // Returns the epoch of the last step, counted from 0.
  int64_t epoch() const {
    return rule_.EpochOfStep(std::max<int64_t>(now_.step - 1, rule_.step_offset));
  }

 private:
  double EpochsOf(int64_t samples) const {
    return static_cast<double>(samples) / static_cast<double>(rule_.epoch_samples);
  }

  BoundarySchedule rule_;
  TrainingPosition first_, now_;
  int64_t before_ = 0;  // samples applied before the last global batch
  double loss_ = 0;
  Quiescence::Progress progress_;
};

// The position of a run at a boundary.
struct BoundaryPoint {
  TrainingPosition before;  // at the boundary before this one
  TrainingPosition now;
  bool run_ends = false;
  bool stopped = false;  // a signal asked the run to stop
};

bool EvaluationDue(const RunConfig& config, const BoundaryPoint& point);

// True if a checkpoint is due.  `saved_samples` is the position of the last checkpoint in the run's folder; the same
// position is not written twice.
bool CheckpointDue(const RunConfig& config, const BoundaryPoint& point, int64_t saved_samples);

}  // namespace dtrain
