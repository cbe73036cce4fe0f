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
#include "framework/runtime/results/run_folder.h"
#include "framework/runtime/results/run_so_far.h"
#include "framework/runtime/run/rank_state.h"
#include "framework/runtime/setup/run_config.h"
#include "framework/runtime/weights/checkpoint.h"

namespace dtrain {

// As the command line asks for it.
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
  std::string data_sha256;  // of the data, where it is known by now; rank 0 has it
  int64_t step_offset = 0;  // RestRule
  DTRAIN_FIELDS(position, weights, solver, state, ranks, images, step_offset)
};

// Rank 0: follows --resume and --weights.  Throws CheckpointError where they cannot be followed.
// Data with which a run is resumed are compared with the checkpoint's, and normalised as those were.
// `time`: of the run, real or virtual.
StartPoint FindStart(const Graph& graph, Dataset& data, const RunConfig& config,
                     const TrainRequest& request, const RunFolder& folder, RunTime time);

// Takes over what the resumed run's plan fixed, and warns "not bit-equal" with the differences
// where this run cannot follow it.
void FollowPlanOf(const StartPoint& start, const RunConfig& config, ExecutionPlan& plan);

// Drops the kernels that this program does not have, of an older one's plan, with a warning: they
// are chosen afresh.
void ForgetUnknownKernels(const Graph& graph, ExecutionPlan& plan);

// Gives every rank rank 0's start.
StartPoint BroadcastStart(Transport& transport, StartPoint start);

}  // namespace dtrain
