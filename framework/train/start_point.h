// StartPoint: the weights and the position with which a run begins: drawn by the initialisers, given, or from a
// checkpoint.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/checkpoint/checkpoint.h"
#include "framework/comm/transport.h"
#include "framework/core/execution_plan.h"
#include "framework/data/dataset.h"
#include "framework/evaluate/run_evaluation.h"
#include "framework/nn/graph.h"
#include "framework/results/run_folder.h"
#include "framework/results/run_so_far.h"
#include "framework/setup/run_config.h"
#include "framework/train/rank_state.h"

namespace dtrain {

// The start that the command line asks for.
struct TrainRequest {
  std::string resume = "none";  // none, auto, PATH
  std::string weights;          // --weights: start from these weights; "": from the initialisers
};

// Returns --weights, else weights.from of the config; "" if neither is given.
inline const std::string& GivenWeights(const RunConfig& config, const TrainRequest& request) {
  return request.weights.empty() ? config.weights.from : request.weights;
}

struct StartPoint {
  TrainingPosition position;
  std::vector<float> weights;
  std::map<std::string, std::vector<float>> solver;  // empty: all zero
  std::vector<float> state;
  std::optional<ExecutionPlan> plan;  // the plan of the resumed run; rank 0 has it
  RankStart ranks;                    // how its rank files are used
  RunSoFar so_far;                    // results so far, which its files continue; rank 0 has it
  // The checkpoint or weights file; "": the weights are drawn.  Rank 0 has it.
  std::string file;
  std::string images;       // normalisation of the data (CheckpointInfo::images); "": as loaded
  DataHashes data_hashes;   // hashes of the data, if known by now; rank 0 has them
  int64_t step_offset = 0;  // BoundarySchedule::step_offset
  // True if the checkpoint is one of the run's own folder (GoesOnIn).
  bool in_own_folder = false;
  DTRAIN_FIELDS(position, weights, solver, state, ranks, images, step_offset, in_own_folder)

  // Returns the step up to which the files of the run's folder keep their lines.  Returns none if the files begin anew,
  // since their lines may be another run's.
  std::optional<int64_t> KeptStep() const {
    return in_own_folder && position.step > 0 ? std::optional(position.step) : std::nullopt;
  }

  // Returns the position of the newest checkpoint in the run's folder.  Returns -1 if the run goes on from a checkpoint
  // elsewhere and its own folder has none yet.
  int64_t SavedSamples() const {
    return position.step > 0 && !in_own_folder ? -1 : position.samples_applied;
  }
};

// Finds the start on rank 0, as --resume and --weights ask for.  Throws CheckpointError if that is impossible.  The
// data of a resumed run are compared with the checkpoint's, and normalised like them.  `time` is that of the run, real
// or virtual.
StartPoint FindStart(const Graph& graph, Dataset& data, const RunConfig& config,
                     const TrainRequest& request, const RunFolder& folder, RunTime time);

// Copies into `plan` what the resumed run's plan fixed.  If this run cannot follow that plan, warns "not bit-equal" and
// lists the differences.
void FollowPlanOf(const StartPoint& start, const RunConfig& config, ExecutionPlan& plan);

// Drops kernels that this program does not have from the resumed run's plan, with a warning; they are chosen anew.
void ForgetUnknownKernels(const Graph& graph, ExecutionPlan& plan);

// Collective: returns rank 0's start on every rank.
StartPoint BroadcastStart(Transport& transport, StartPoint start);

}  // namespace dtrain
