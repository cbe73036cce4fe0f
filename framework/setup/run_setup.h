// Run set-up: makes everything that a run needs before its first step from the config: data, graph, execution plan and
// net, and lets the ranks agree on all of it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "framework/checkpoint/checkpoint.h"
#include "framework/comm/transport.h"
#include "framework/core/execution_plan.h"
#include "framework/data/dataset.h"
#include "framework/data/sampler.h"
#include "framework/device/cpu/threads.h"
#include "framework/nn/graph.h"
#include "framework/nn/net.h"
#include "framework/setup/run_config.h"
#include "framework/strategies/strategy.h"

namespace dtrain {

// Reads the config's model for the data set as it is published; if lengths vary, for a typical batch.  Loads no data.
Graph ReadModel(const RunConfig& config);
// Does the same for these fields: those of the loaded data set, whose vocabulary may have another size.
Graph ReadModel(const RunConfig& config, const std::vector<FieldSpec>& fields);

// Describes one of the models in configs/models.
struct ModelListing {
  std::string name;
  int64_t parameters = 0;
  double forward_flops = 0;  // for one sample
};
std::vector<ModelListing> ListModels();  // throws ConfigError when there is none

// Finds and loads the config's data set.  Throws DataError if broken images leave less than a batch.
std::unique_ptr<Dataset> LoadData(const RunConfig& config);

// Keeps targets that are numbers as they are in the files, unless the model's losses are mean squared errors: these are
// of targets less their mean, over their deviation, as the samples are.  Call it before anything is read.
void DecideTargets(const Graph& graph, Dataset& dataset);

// Returns the CPUs of every rank on rank 0, nothing on the others.  It is a collective call.
std::vector<RankCpus> GatherCpus(Transport& transport);

// Returns the threads by rule (ThreadsByRule) for rank 0's `cpus`, on every rank.  It is a collective call; the first
// `workers` ranks compute.
int AgreeOnThreads(Transport& transport, const std::vector<RankCpus>& cpus, int workers);

// Returns the plan by rule, or that of `plan: FILE`.  `threads_by_rule` is used if neither gives the number of threads.
ExecutionPlan DecidePlan(const RunConfig& config, const Graph& graph, int workers,
                         int threads_by_rule);

// Returns the threads by rule if so many workers have this machine to themselves.
int ThreadsHere(int workers);

// The batch sizes a net will compute; it is compiled for them before the first batch.
struct NetUse {
  // Sizes of a worker's mini-batches.  The first one is the usual size, which decides the kernels.  Empty: the net does
  // not train.
  std::vector<int64_t> shares = {};
  int64_t parts = 1;      // micro-batches of a share
  int64_t evaluated = 0;  // samples of an evaluation block; 0: compiled on first use
  int64_t estimated = 0;  // the same, of a batch by which batch-norm statistics are estimated
  bool measure = false;   // `plan: measure`: the fastest kernels, where the plan names none
  // False if another rank has decided the plan: this one follows it, and where it cannot its choice is its own.
  bool decides = true;
};

// Makes the net of a plan: sets the thread budget, compiles the graph for the plan's device, and adds the chosen
// kernels to the plan.  Every net of a run is made here.
std::unique_ptr<Net> MakeNet(const Graph& graph, const NetUse& use, ExecutionPlan& plan);

// True if a kernel of the plan multiplies in bf16.
bool ComputesInBf16(const ExecutionPlan& plan);

// Returns the plan's device, with its threads and precision; a GPU gets a new queue at each call.  Throws what
// DeviceKindOf, PrecisionOf and OpenCuda throw.
Device DeviceOf(const ExecutionPlan& plan);

// Returns the device of a plan or a config; "auto" is a GPU unless there is a reason (WhyNoAutoGpu).  Throws ConfigError
// for any other word.
DeviceKind DeviceKindOf(const std::string& device);

// Returns why `device: auto` takes no GPU in this process; none if it takes one: if OpenCuda opens one, and a kernel runs
// on it.  `driver`: whether the machine has NVIDIA's, without which nothing is opened, since that takes a while.
// `folder` as for WhyNoCuda.
std::optional<std::string> WhyNoAutoGpu(bool driver, const std::filesystem::path& folder = "");

// Throws ConfigError if this machine lacks the config's device, or cannot compute on it with the config's precision.
void CheckDevice(const RunConfig& config);

// Reports which device `device: auto` takes, and why not a GPU: always if the machine may have one, else only with
// --verbose.  Reports nothing if the config names a device.  Called by one rank of a run.
void TellDevice(const RunConfig& config);

// Prints the model's warnings, for example of layers that make no sense with its data.  Called by one rank of a run.
void TellModel(const Graph& graph);

// Returns which layers are frozen: "conv1, conv2 (2 of 4 layers with parameters, 25570 of 61706 parameters)"; "" if all
// are trained.  A layer that is frozen by its model's `lr_factor` and not by weights.freeze is listed as "bn1 without
// its statistics" if these are still updated.
std::string FrozenText(const Graph& graph);

// Says how the user's own data were understood (data_summary.h), or warns of each file of a published set that is not as
// published, which may be intended.  Called by one rank of a run.
void TellData(const RunConfig& config, const Dataset& dataset);

// Returns the precision.  Throws ConfigError if this device cannot compute with it: there is no fallback to another
// one.
Precision PrecisionOf(const std::string& precision, DeviceKind device);

ModelLayout ModelLayoutOf(const Graph& graph);
// The same with the data's properties, which a checkpoint must have, too: the vocabularies of a translation set, or the
// properties of a set of images.
ModelLayout ModelLayoutOf(const Graph& graph, const Dataset& dataset);

// Compares source revision, config, graph, plan and data (Dataset::ManifestHash) of all ranks (agreement.h).
void AgreeOnRun(Transport& transport, const RunConfig& config, const Graph& graph,
                const ExecutionPlan& plan, const std::string& data_sha256);

}  // namespace dtrain
