// Run set-up: everything a run needs before its first step, made from the config in one place -
// data, graph, execution plan, net, and the agreement of the ranks on all of it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "framework/comm/transport.h"
#include "framework/core/execution_plan.h"
#include "framework/data/dataset.h"
#include "framework/data/sampler.h"
#include "framework/nn/graph.h"
#include "framework/nn/net.h"
#include "framework/runtime/setup/run_config.h"
#include "framework/runtime/weights/checkpoint.h"
#include "framework/strategies/strategy.h"

namespace dtrain {

// The config's model, for the data set as it is published (a typical batch of it, where lengths
// vary).  Loads no data.
Graph ReadModel(const RunConfig& config);
// For these fields: those of the loaded data set, which may have another size of vocabulary.
Graph ReadModel(const RunConfig& config, const std::vector<FieldSpec>& fields);

// The models of configs/models.
struct ModelListing {
  std::string name;
  int64_t parameters = 0;
  double forward_flops = 0;  // a sample
};
std::vector<ModelListing> ListModels();  // throws ConfigError when there is none

// Finds and loads the config's data set.
std::unique_ptr<Dataset> LoadData(const RunConfig& config);

// Threads by rule (ThreadsByRule) for these ranks, the first `workers` of which compute.
// Collective: every rank calls it and gets the same number.
int AgreeOnThreads(Transport& transport, int workers);

// The plan by rule, or from `plan: FILE`; `threads_by_rule` counts where neither names threads.
ExecutionPlan DecidePlan(const RunConfig& config, const Graph& graph, int workers,
                         int threads_by_rule);

// Threads by rule where so many workers share this machine with nobody else.
int ThreadsHere(int workers);

// What a net will be asked to compute, so that it is compiled before the first batch comes.
struct NetUse {
  // Samples that a worker trains on at once.  The first is the usual number, which decides the
  // kernels; empty: it does not train.
  std::vector<int64_t> shares = {};
  int64_t parts = 1;      // micro-batches of a share
  int64_t evaluated = 0;  // samples of an evaluation's block; 0: as they come
};

// The one place where a run's plan becomes a net: budgets the plan's threads, compiles the graph
// for its device and completes the plan with the kernels chosen.
std::unique_ptr<Net> MakeNet(const Graph& graph, const NetUse& use, ExecutionPlan& plan);

// Whether a kernel of the plan multiplies in bf16.
bool ComputesInBf16(const ExecutionPlan& plan);

// The plan's device, with its threads and precision; a GPU's queue is its own each time.  Throws what
// DeviceKindOf, PrecisionOf and OpenCuda throw.
Device DeviceOf(const ExecutionPlan& plan);

// What a plan's or a config's device is; "auto" is the CPU so far.  Throws ConfigError for another
// word.
DeviceKind DeviceKindOf(const std::string& device);

// Throws ConfigError where this machine cannot compute what the config asks for: no such device, or not
// with that precision.
void CheckDevice(const RunConfig& config);

// Says what `device: auto` takes, and why not the other: to everybody where a GPU may be here, else with
// --verbose; of a device that was named there is nothing to say.  For one rank of a run.
void TellDevice(const RunConfig& config);

// Warns of what of the model makes no sense with its data.  For one rank of a run.
void TellModel(const Graph& graph);

// Which layers keep their parameters: "conv1, conv2 (2 of 4 layers with parameters, 25570 of 61706 parameters)"; ""
// where all are trained.  One that its model's `lr_factor` stops, not weights.freeze, is named "bn1 without its
// statistics" where these go on moving.
std::string FrozenText(const Graph& graph);

// Warns of each file of the data set that is not as published: an own variant is as good as any, if it is
// meant.  For one rank of a run.
void TellData(const RunConfig& config);

// Throws ConfigError where this device cannot compute with that precision: nothing falls back to
// another one.
Precision PrecisionOf(const std::string& precision, DeviceKind device);

ModelLayout ModelLayoutOf(const Graph& graph);
// With the vocabularies of a set for translation, which a checkpoint must have too, or what a set knows of its
// images.
ModelLayout ModelLayoutOf(const Graph& graph, const Dataset& dataset);

// Compares source revision, config, graph, plan and data (Dataset::ManifestHash) of all ranks (agreement.h).
void AgreeOnRun(Transport& transport, const RunConfig& config, const Graph& graph,
                const ExecutionPlan& plan, const std::string& data_sha256);

}  // namespace dtrain
