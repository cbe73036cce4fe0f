// RunSoFar: what the files of a run go on with when it is resumed, and cannot tell from the weights.
// A checkpoint carries it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/runtime/results/trained_epoch.h"

namespace dtrain {

// A run counts its steps by these (BoundarySchedule).
struct StepCount {
  int64_t batch = 0;          // global; 0: an older program did not tell
  int64_t epoch_samples = 0;  // the training set
  int64_t offset = 0;
  // The run had paused for the end of an epoch (BoundarySchedule::PausedForEpoch); older programs did not tell.
  bool at_epoch_end = false;
};

struct RunSoFar {
  double seconds = 0;           // since its start, evaluations and checkpoints included
  double training_seconds = 0;  // without them
  TrainedEpoch epoch;           // the one that the checkpoint lies in, or ends
  std::optional<double> loss =
      {};  // of the last logged step; in a simulation SimulationResult::loss
  StepCount steps = {};
  bool over = false;  // a simulated run was over here, and its accumulators are flushed
  // Lines of metrics.jsonl for all evaluations so far: best, patience and target go by them.  Not set where an older
  // program wrote the checkpoint.
  std::optional<std::vector<std::string>> evaluations = {};
};

std::string ToJson(const RunSoFar& so_far);

// All is 0 or none for a checkpoint without such a text (""), and so is what is missing or damaged.
RunSoFar RunSoFarFrom(const std::string& json);

}  // namespace dtrain
