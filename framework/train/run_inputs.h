// RunInputs: everything a run needs before its first step, the same on every rank.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "framework/checkpoint/checkpoint.h"
#include "framework/comm/transport.h"
#include "framework/core/execution_plan.h"
#include "framework/data/dataset.h"
#include "framework/data/sampler.h"
#include "framework/nn/graph.h"
#include "framework/nn/net.h"
#include "framework/setup/run_config.h"
#include "framework/train/run_outputs.h"
#include "framework/train/start_point.h"

namespace dtrain {

struct RunInputs {
  std::unique_ptr<Dataset> dataset;
  std::unique_ptr<Sampler> sampler;
  std::unique_ptr<Graph> graph;  // the model for this data set
  std::unique_ptr<Net> net;      // a worker's net; null on other ranks
  ModelLayout layout;            // layout of checkpoints; only rank 0 has the hash of the data
  ExecutionPlan plan;
  StartPoint start;
  // Holds the saved state of this rank, if it goes on with it.
  std::map<Rank, StateRecord> ranks;  // this rank alone
  std::optional<WorkerState> worker;
};

// Loads the inputs that every rank needs itself: the data, and the model, which depends on them (vocabularies).
// `computes`: the rank is a worker.
void LoadInputs(const RunConfig& config, bool computes, RunInputs& inputs);

// Decides on rank 0 for all ranks, from these inputs: the start, in a run folder that need not exist, and the plan.
// `threads` is the number of a worker's threads if neither the config nor a plan file gives it.  Also makes worker 0's
// net, which the choice of the plan's kernels needs.
void DecideInputs(const RunConfig& config, const TrainRequest& request, const RunFolder& folder,
                  int threads, RunInputs& inputs);

// Collective.  All ranks load the data, and the model that depends on them.  Rank 0 makes the run folder, finds the
// start and decides the plan, including the kernels.  All ranks get both and compare their inputs.  From then on the
// thread budget is the plan's.
RunInputs AgreeOnInputs(Transport& transport, const RunConfig& config, const TrainRequest& request,
                        RunOutputs& outputs);

}  // namespace dtrain
