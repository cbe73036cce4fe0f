// RunPosition: how far a run has come, as this rank knows, and its loss on the way; and what is due
// where it boundaries.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/exchange/quiescence.h"
#include "framework/runtime/results/summary.h"
#include "framework/runtime/setup/run_config.h"
#include "framework/runtime/weights/checkpoint.h"
#include "framework/strategies/report.h"

namespace dtrain {

class RunPosition {
 public:
  RunPosition() = default;
  RunPosition(const BoundarySchedule& rule, const TrainingPosition& start)
      : rule_(rule), first_(start), now_(start) {}

  void MoveTo(int64_t samples_applied);
  // The run was over here, before its last epoch.
  void EndHere() {
    rule_.last_samples = now_.samples_applied;
    rule_.ended_early = true;
  }
  // Synchronous runs: all workers have ended a step.
  void Add(const StepOutcome& outcome);
  // Asynchronous ones: what rank 0 has been told so far; false where that is nothing new.
  bool UpdateProgress(const Quiescence::Progress& progress);

  const BoundarySchedule& rule() const { return rule_; }
  const TrainingPosition& first() const { return first_; }  // where this run began
  const TrainingPosition& now() const { return now_; }
  double loss() const { return loss_; }  // of the last step, mean over its samples
  // Samples applied since it began.
  int64_t samples() const { return now_.samples_applied - first_.samples_applied; }
  double epochs() const { return EpochsOf(now_.samples_applied); }  // in all, with fractions
  // At the beginning of the last global batch, which at the end of an epoch may be a small one;
  // schedules follow it.
  double EpochsBeforeLastBatch() const { return EpochsOf(before_); }
  int64_t last_step() const { return rule_.StepsOf(rule_.last_samples); }
  // Fills in how far it has come.
  void Describe(Summary& summary) const;
  bool RunEnds() const { return now_.samples_applied >= rule_.last_samples; }
  // The epoch that the last step belongs to, counted from 0.
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

// Where a run stands at a boundary.
struct BoundaryPoint {
  TrainingPosition before;  // at the boundary before
  TrainingPosition now;
  bool run_ends = false;
  bool stopped = false;  // by a signal
};

bool EvaluationDue(const RunConfig& config, const BoundaryPoint& point);

// `saved_samples`: at the last checkpoint in the run's folder; the same is not written twice.
bool CheckpointDue(const RunConfig& config, const BoundaryPoint& point, int64_t saved_samples);

}  // namespace dtrain
