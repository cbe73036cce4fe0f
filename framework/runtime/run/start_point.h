// StartPoint: the weights and the position a run begins with - fresh from the initialisers, from
// given weights, or from a checkpoint.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/core/execution_plan.h"
#include "framework/data/dataset.h"
#include "framework/nn/graph.h"
#include "framework/runtime/judge/run_evaluation.h"
#include "framework/runtime/results/run_folder.h"
#include "framework/runtime/results/run_so_far.h"
#include "framework/runtime/run/rank_state.h"
#include "framework/runtime/setup/run_config.h"
#include "framework/runtime/weights/checkpoint.h"

namespace dtrain {

// The command line asks for this.
struct TrainRequest {
  std::string resume = "none";  // none, auto, PATH
  std::string weights;          // start from these weights, not from the initialisers; "" = no
};

// --weights, else weights.from of the config; "" for none.
inline const std::string& GivenWeights(const RunConfig& config, const TrainRequest& request) {
  return request.weights.empty() ? config.weights.from : request.weights;
}

struct StartPoint {
  TrainingPosition position;
  std::vector<float> weights;
  std::map<std::string, std::vector<float>> solver;  // empty: zero
  std::vector<float> state;
  std::optional<ExecutionPlan> plan;  // of the run that is resumed; rank 0 has it
  RankStart ranks;                    // what becomes of its rank files
  RunSoFar so_far;                    // what its files go on with; rank 0 has it
  std::string file;                   // the checkpoint or the weights; "": drawn.  Rank 0 has it
  std::string images;  // what the data are normalised as (CheckpointInfo::images); "": as loaded
  DataHashes data_hashes;   // of the data, where they are known by now; rank 0 has them
  int64_t step_offset = 0;  // BoundarySchedule
  // The checkpoint is one of the run's own folder (GoesOnIn).
  bool in_own_folder = false;
  // An older program wrote the checkpoint without the evaluations that the run had had; rank 0 knows.
  bool lacks_evaluations = false;
  DTRAIN_FIELDS(position, weights, solver, state, ranks, images, step_offset, in_own_folder)

  // The step up to which the files of the run's folder keep their lines; none where they begin anew: lines of another
  // run may lie there.
  std::optional<int64_t> KeptStep() const {
    return in_own_folder && position.step > 0 ? std::optional(position.step) : std::nullopt;
  }

  // The samples of the newest checkpoint in the run's folder; -1 where the run goes on with one that lies elsewhere, and
  // its own folder has none yet.
  int64_t SavedSamples() const {
    return position.step > 0 && !in_own_folder ? -1 : position.samples_applied;
  }
};

// Rank 0: follows --resume and --weights.  Throws CheckpointError where they cannot be followed.
// Data with which a run is resumed are compared with the checkpoint's, and normalised as those were.
// `time` is that of the run, real or virtual.
StartPoint FindStart(const Graph& graph, Dataset& data, const RunConfig& config,
                     const TrainRequest& request, const RunFolder& folder, RunTime time);

// Takes over what the resumed run's plan fixed, and warns "not bit-equal" with the differences
// where this run cannot follow it.
void FollowPlanOf(const StartPoint& start, const RunConfig& config, ExecutionPlan& plan);

// Drops the kernels that this program does not have, of an older one's plan, with a warning: they
// are chosen afresh.
void ForgetUnknownKernels(const Graph& graph, ExecutionPlan& plan);

// Rank 0, of a run that is resumed: gives `results` the evaluations from before, from the checkpoint or, where an older
// program wrote that, from metrics.jsonl of the run's own folder.  Warns where neither tells those that there were.
void RecallEvaluations(const StartPoint& start, const RunFolder& folder, RunResults& results);

// Gives every rank rank 0's start.
StartPoint BroadcastStart(Transport& transport, StartPoint start);

}  // namespace dtrain
