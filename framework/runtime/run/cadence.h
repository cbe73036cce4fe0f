// Cadence: what is due when a run rests, by the config and by what has been passed since the last
// rest.
#pragma once

#include "framework/runtime/setup/run_config.h"
#include "framework/runtime/weights/checkpoint.h"

namespace dtrain {

// Where a run stands at a rest.
struct RestPoint {
  TrainingPosition before;  // at the rest before
  TrainingPosition now;
  bool run_ends = false;
  bool stopped = false;  // by a signal
};

bool EvaluationDue(const RunConfig& config, const RestPoint& point);

// `saved_samples`: at the last checkpoint, or the one the run began with; the same is not written
// twice.
bool CheckpointDue(const RunConfig& config, const RestPoint& point, int64_t saved_samples);

}  // namespace dtrain
