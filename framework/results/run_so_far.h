// RunSoFar: the state of a run's result files that a resumed run needs in order to continue them.  It is stored in a
// checkpoint, since it cannot be derived from the weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/results/trained_epoch.h"

namespace dtrain {

// Holds the values by which a run counts its steps (BoundarySchedule).
struct StepCount {
  int64_t batch = 0;          // global batch size
  int64_t epoch_samples = 0;  // size of the training set
  int64_t offset = 0;
  // True if the run had paused for the end of an epoch (BoundarySchedule::PausedForEpoch).
  bool at_epoch_end = false;
};

struct RunSoFar {
  double seconds = 0;           // since the start of the run, including evaluations and checkpoints
  double training_seconds = 0;  // the same without evaluations and checkpoints
  TrainedEpoch epoch;           // the epoch in which, or at whose end, the checkpoint was written
  std::optional<double> loss =
      {};  // of the last logged step; in a simulation SimulationResult::loss
  StepCount steps = {};
  // A simulated run was finished here, and its accumulators are flushed.
  bool over = false;
  // The lines of metrics.jsonl of all evaluations so far; the best result, the patience and the target follow from
  // them.
  std::vector<std::string> evaluations = {};
  // True if a run can go on with it: the count of steps and the list of evaluations were there.
  bool whole = false;
};

std::string ToJson(const RunSoFar& so_far);

// Reads the text of ToJson.  Missing or damaged values are 0, nullopt or empty, as is everything for the text "".
RunSoFar RunSoFarFrom(const std::string& json);

}  // namespace dtrain
