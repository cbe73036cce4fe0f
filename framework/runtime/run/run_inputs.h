// RunInputs: what a run stands on before its first step, the same on every rank.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "framework/comm/transport.h"
#include "framework/core/execution_plan.h"
#include "framework/data/dataset.h"
#include "framework/data/sampler.h"
#include "framework/nn/graph.h"
#include "framework/nn/net.h"
#include "framework/runtime/run/run_outputs.h"
#include "framework/runtime/run/start_point.h"
#include "framework/runtime/setup/run_config.h"
#include "framework/runtime/weights/checkpoint.h"

namespace dtrain {

struct RunInputs {
  std::unique_ptr<Dataset> dataset;
  std::unique_ptr<Sampler> sampler;
  std::unique_ptr<Graph> graph;  // for this data set
  std::unique_ptr<Net> net;      // a worker's
  ModelLayout layout;            // of checkpoints; rank 0, but for the hash of the data
  ExecutionPlan plan;
  StartPoint start;
  // Of this rank, where it goes on with what it had.
  std::map<Rank, StateRecord> ranks;  // itself alone
  std::optional<WorkerState> worker;
};

// What every rank has of its own: the data, and the model, which follows them (vocabularies).  `computes`: the
// rank is a worker.
void LoadInputs(const RunConfig& config, bool computes, RunInputs& inputs);

// What rank 0 decides for all on that: where to begin, in a run folder that need not be there, and the plan, with
// `threads` a worker where neither the config nor a plan file gives their number; and it makes worker 0's net, whose
// kernels are the plan's.
void DecideInputs(const RunConfig& config, const TrainRequest& request, const RunFolder& folder,
                  int threads, RunInputs& inputs);

// All ranks call it.  All load the data, which the model follows (vocabularies); rank 0 makes the
// run folder, finds where to begin and decides the plan, kernels included; all get both and compare
// what they have.  The thread budget is the plan's from then on.
RunInputs AgreeOnInputs(Transport& transport, const RunConfig& config, const TrainRequest& request,
                        RunOutputs& outputs);

}  // namespace dtrain
