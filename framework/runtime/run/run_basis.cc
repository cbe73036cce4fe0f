#include "framework/runtime/run/run_basis.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "framework/comm/gather.h"
#include "framework/device/cpu/threads.h"
#include "framework/runtime/judge/evaluator.h"
#include "framework/runtime/launch/world.h"
#include "framework/runtime/setup/run_exchange.h"
#include "framework/runtime/setup/run_setup.h"
#include "framework/runtime/setup/schedule_profile.h"
#include "framework/runtime/setup/trained_data.h"
#include "framework/runtime/weights/checkpoint_folder.h"

namespace dtrain {
namespace {

// Compiled for the sizes of a full mini-batch and of the last one of an epoch; others follow when
// they come.
NetUse UseOf(const RunConfig& config, const RunBasis& basis, int worker, int workers) {
  const Sampler& sampler = *basis.sampler;
  const uint64_t last = sampler.steps_per_epoch() - 1;
  return {
      .shares = {sampler.ShareOf(0, worker, workers).share.size(),
                 sampler.ShareOf(last, worker, workers).share.size()},
      .parts = config.accumulate,
      .evaluated = std::min(EvaluationBlockOf(*basis.dataset), basis.dataset->size(Split::kTest))};
}

// The rank's own file, and no other's.
void ReadOwnState(const Graph& graph, bool has_worker, Rank rank, RunBasis& basis) {
  const RankStart& start = basis.start.ranks;
  if (!start.exact()) return;
  RankCheckpoint own = ReadRankCheckpoint(start.main, rank, start.hashes.at(rank));
  basis.ranks[rank] = std::move(own.exchange);
  if (!has_worker) return;
  basis.worker.emplace().statistics.resize(static_cast<size_t>(graph.state().size()));
  PlayState(own.host, [&](StateVisitor& visitor) { basis.worker->Visit(visitor); });
  CopyFrozen(graph.state(), basis.start.state.data(), basis.worker->statistics.data());
}

// Every rank normalises as rank 0, which has done so when it looked at the checkpoint.
void NormaliseAsDecided(RunBasis& basis) {
  if (basis.start.images.empty()) return;
  CheckpointInfo info;
  info.images = basis.start.images;
  NormaliseAsTrained(info, "rank 0's checkpoint", *basis.dataset);
}

}  // namespace

void LoadBasis(const RunConfig& config, bool computes, RunBasis& basis) {
  // Their mistakes come before the data's, which may take a while.
  CheckProfile(config, ReadModel(config));
  if (computes) CheckDevice(config);
  basis.dataset = LoadData(config);
  basis.graph = std::make_unique<Graph>(ReadModel(config, basis.dataset->fields()));
  basis.sampler = std::make_unique<Sampler>(config.seed, *basis.dataset, config.batch);
}

void DecideBasis(const RunConfig& config, const TrainRequest& request, const RunFolder& folder,
                 int threads, RunBasis& basis) {
  const int workers = PlacementOf(config).workers;
  basis.start = FindStart(*basis.graph, *basis.dataset, config, request, folder, RunTime::kReal);
  basis.layout = ModelLayoutOf(*basis.graph, *basis.dataset);
  basis.plan = DecidePlan(config, *basis.graph, workers, threads);
  FollowPlanOf(basis.start, config, basis.plan);
  if (basis.start.plan) ForgetUnknownKernels(*basis.graph, basis.plan);
  basis.net = MakeNet(*basis.graph, UseOf(config, basis, 0, workers), basis.plan);
}

RunBasis AgreeOnBasis(Transport& transport, const RunConfig& config, const TrainRequest& request,
                      RunOutputs& outputs) {
  RunBasis basis;
  const bool root = transport.rank() == 0;
  const Placement placement = PlacementOf(config);
  const int workers = placement.workers;
  const int threads = AgreeOnThreads(transport, workers);
  TryTogether(transport, [&] {
    // First of all: a run that is refused must not write into the other's folder, not even an
    // error.
    if (root) outputs.CreateFolder(GoesOnIn(config.output, request.resume));
    LoadBasis(config, placement.IsWorker(transport.rank()), basis);
    if (root) TellModel(*basis.graph);
    if (root) DecideBasis(config, request, outputs.folder(), threads, basis);
  });
  basis.plan = PlanFromJson(Broadcast(transport, root ? ToJson(basis.plan) : ""), "rank 0's plan");
  basis.start = BroadcastStart(transport, std::move(basis.start));
  NormaliseAsDecided(basis);
  const DataHashes& known = basis.start.data_hashes;
  basis.layout.data_hashes = known.all.empty() ? basis.dataset->Hashes() : known;
  AgreeOnRun(transport, config, *basis.graph, basis.plan, basis.layout.data_hashes.all);
  TryTogether(transport, [&] {
    const bool has_worker = placement.IsWorker(transport.rank());
    ReadOwnState(*basis.graph, has_worker, transport.rank(), basis);
    if (!has_worker) return ApplyThreadBudget(basis.plan.threads);
    if (root) return;
    // A smaller share may lack a kernel of the plan; what its net takes instead is no part of it.
    ExecutionPlan plan = basis.plan;
    basis.net = MakeNet(*basis.graph, UseOf(config, basis, transport.rank(), workers), plan);
  });
  return basis;
}

}  // namespace dtrain
