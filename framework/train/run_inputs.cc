#include "framework/train/run_inputs.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/comm/gather.h"
#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/process.h"
#include "framework/device/cpu/threads.h"
#include "framework/evaluate/evaluator.h"
#include "framework/launch/world.h"
#include "framework/setup/run_exchange.h"
#include "framework/setup/run_setup.h"
#include "framework/setup/schedule_profile.h"
#include "framework/setup/trained_data.h"
#include "framework/train/estimated_state.h"

namespace dtrain {
namespace {

// The net is compiled for the sizes of a full mini-batch and of the last one of an epoch; other sizes are compiled when
// they occur.
NetUse UseOf(const RunConfig& config, const RunInputs& inputs, int worker, int workers) {
  const Sampler& sampler = *inputs.sampler;
  const uint64_t last = sampler.steps_per_epoch() - 1;
  return {
      .shares = {sampler.ShareOf(0, worker, workers).share.size(),
                 sampler.ShareOf(last, worker, workers).share.size()},
      .parts = config.accumulate,
      .evaluated = std::min(EvaluationBlockOf(*inputs.dataset), inputs.dataset->size(Split::kTest)),
      .estimated = EstimateBatchOf(*inputs.dataset,
                                   SamplesOfEstimate(config, *inputs.graph, *inputs.dataset)),
      .measure = config.plan == "measure"};
}

// Reads this rank's own file, and no other rank's.
void ReadOwnState(const Graph& graph, bool has_worker, Rank rank, RunInputs& inputs) {
  const RankStart& start = inputs.start.ranks;
  if (!start.exact()) return;
  RankCheckpoint own = ReadRankCheckpoint(start.main, rank, start.hashes.at(rank));
  inputs.ranks[rank] = std::move(own.exchange);
  if (!has_worker) return;
  inputs.worker.emplace().statistics.resize(static_cast<size_t>(graph.state().size()));
  PlayState(own.host, [&](StateVisitor& visitor) { inputs.worker->Visit(visitor); });
  CopyFrozen(graph.state(), inputs.start.state.data(), inputs.worker->statistics.data());
}

// Normalises the data as rank 0 did when it read the checkpoint.
void NormaliseAsDecided(RunInputs& inputs) {
  if (inputs.start.images.empty()) return;
  CheckpointInfo info;
  info.images = inputs.start.images;
  NormaliseAsTrained(info, "rank 0's checkpoint", *inputs.dataset);
}

// Each machine decides what `device: auto` is; rank 0's is the plan's.
void CheckSameDevice(const RunConfig& config, const ExecutionPlan& plan, const Placement& placement,
                     int rank) {
  if (config.device != "auto" || !placement.IsWorker(rank)) return;
  const std::string_view here = NameOf(DeviceKindOf(config.device));
  if (here == plan.device) return;
  throw ConfigError(fmt::format("device: auto is {} on {}, and {} where rank 0 is", here,
                                HostName(), plan.device),
                    "device: cpu, or machines that are alike");
}

}  // namespace

void LoadInputs(const RunConfig& config, bool computes, RunInputs& inputs) {
  // These errors are reported before the data are loaded, which may take a while.
  CheckProfile(config, ReadModel(config));
  if (computes) CheckDevice(config);
  inputs.dataset = LoadData(config);
  inputs.graph = std::make_unique<Graph>(ReadModel(config, inputs.dataset->fields()));
  DecideTargets(*inputs.graph, *inputs.dataset);
  inputs.sampler = std::make_unique<Sampler>(config.seed, *inputs.dataset, config.batch);
}

void DecideInputs(const RunConfig& config, const TrainRequest& request, const RunFolder& folder,
                  int threads, RunInputs& inputs) {
  const int workers = PlacementOf(config).workers;
  inputs.start = FindStart(*inputs.graph, *inputs.dataset, config, request, folder, RunTime::kReal);
  inputs.layout = ModelLayoutOf(*inputs.graph, *inputs.dataset);
  inputs.plan = DecidePlan(config, *inputs.graph, workers, threads);
  inputs.plan.compress_cost = {};  // `plan: FILE` may be a simulation's
  FollowPlanOf(inputs.start, config, inputs.plan);
  if (inputs.start.plan) ForgetUnknownKernels(*inputs.graph, inputs.plan);
  inputs.net = MakeNet(*inputs.graph, UseOf(config, inputs, 0, workers), inputs.plan);
}

RunInputs AgreeOnInputs(Transport& transport, const RunConfig& config, const TrainRequest& request,
                        RunOutputs& outputs) {
  RunInputs inputs;
  const bool root = transport.rank() == 0;
  const Placement placement = PlacementOf(config);
  const int workers = placement.workers;
  const std::vector<RankCpus> cpus = GatherCpus(transport);
  const int threads = AgreeOnThreads(transport, cpus, workers);
  TryTogether(transport, [&] {
    // This comes first: a refused run must not write into another run's folder, not even an error file.
    if (root) outputs.CreateFolder(GoesOnIn(config.output, request.resume));
    LoadInputs(config, placement.IsWorker(transport.rank()), inputs);
    if (root) TellModel(*inputs.graph);
    if (root) DecideInputs(config, request, outputs.folder(), threads, inputs);
    const std::string crowding = CrowdingOf(cpus, workers, inputs.plan.threads);
    if (!crowding.empty()) log::Warning("{}", crowding);
  });
  inputs.plan =
      PlanFromJson(Broadcast(transport, root ? ToJson(inputs.plan) : ""), "rank 0's plan");
  inputs.start = BroadcastStart(transport, std::move(inputs.start));
  NormaliseAsDecided(inputs);
  const DataHashes& known = inputs.start.data_hashes;
  inputs.layout.data_hashes = known.all.empty() ? inputs.dataset->Hashes() : known;
  TryTogether(transport,
              [&] { CheckSameDevice(config, inputs.plan, placement, transport.rank()); });
  AgreeOnRun(transport, config, *inputs.graph, inputs.plan, inputs.layout.data_hashes.all);
  TryTogether(transport, [&] {
    const bool has_worker = placement.IsWorker(transport.rank());
    ReadOwnState(*inputs.graph, has_worker, transport.rank(), inputs);
    if (!has_worker) return ApplyThreadBudget(inputs.plan.threads);
    if (root) return;
    // A smaller share may have no such kernel as the plan names.  The net then takes another one, which does not change
    // the plan.
    ExecutionPlan plan = inputs.plan;
    NetUse use = UseOf(config, inputs, transport.rank(), workers);
    use.measure = use.decides = false;
    inputs.net = MakeNet(*inputs.graph, use, plan);
  });
  return inputs;
}

}  // namespace dtrain
