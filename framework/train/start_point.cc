#include "framework/train/start_point.h"

#include <algorithm>

#include <fmt/format.h>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/comm/gather.h"
#include "framework/core/bytes.h"
#include "framework/core/log.h"
#include "framework/core/text.h"
#include "framework/data/images/image_set.h"
#include "framework/nn/kernel.h"
#include "framework/setup/run_exchange.h"
#include "framework/setup/run_setup.h"
#include "framework/setup/trained_data.h"
#include "framework/train/config_diff.h"
#include "framework/train/step_count.h"

namespace dtrain {
namespace {

StartPoint Fresh(const Graph& graph, uint64_t seed) {
  StartPoint start;
  start.weights.resize(static_cast<size_t>(graph.weights().size()));
  start.state.resize(static_cast<size_t>(graph.state().size()));
  graph.InitializeWeights(seed, start.weights.data());
  graph.InitializeState(start.state.data());
  return start;
}

StartPoint FromCheckpoint(Checkpoint checkpoint, RunSoFar so_far) {
  StartPoint start;
  start.file = checkpoint.path.string();
  start.position = checkpoint.info.position;
  start.so_far = std::move(so_far);
  start.plan = PlanFromJson(checkpoint.info.plan_json, "the checkpoint's plan");
  start.weights = std::move(checkpoint.weights);
  start.solver = std::move(checkpoint.solver);
  start.state = std::move(checkpoint.state);
  return start;
}

void TellDifferences(const CheckpointInfo& info, const RunConfig& config) {
  const std::string diff = ConfigDiff(info.config_yaml, config.effective_yaml);
  if (!diff.empty()) {
    log::Warning("the config is not the checkpoint's (checkpoint -> now):\n{}", diff);
  }
  // With another seed, the order of the samples, dropout and augmentation differ.
  if (info.seed != config.seed) {
    log::Warning("not bit-equal to the undisturbed run: its seed is {}, now it is {}", info.seed,
                 config.seed);
  }
}

StartPoint Resumed(Checkpoint checkpoint, const Graph& graph, Dataset& data,
                   const RunConfig& config, RunTime time) {
  RunSoFar so_far = SoFarOf(checkpoint.info, checkpoint.path.string());
  TellDifferences(checkpoint.info, config);
  const int64_t train_samples = data.size(Split::kTrain);
  const int64_t step_offset = StepOffsetOf(checkpoint, config, train_samples);
  const std::string normalised =
      NormaliseAsTrained(checkpoint.info, checkpoint.path.string(), data);
  DataHashes data_hashes;
  CheckGoesOnWith(checkpoint, config, data, data_hashes);
  if (!normalised.empty()) log::Warning("{}", normalised);
  const std::string images = normalised.empty() ? "" : ToText(*data.image_info());
  RankStart ranks = StartOfRanks(checkpoint, config, WorldOf(config, graph, data, time),
                                 time == RunTime::kVirtual || KeepsRankState(config));
  StartPoint start = FromCheckpoint(std::move(checkpoint), std::move(so_far));
  start.ranks = std::move(ranks);
  start.images = images;
  start.data_hashes = std::move(data_hashes);
  start.step_offset = step_offset;
  // With the new batch, the samples that an asynchronous run has applied of the next epoch may be a different number of
  // batches.
  start.position.step = BoundaryScheduleOf(config, train_samples, step_offset)
                            .StepsOf(start.position.samples_applied);
  return start;
}

// Returns the start of a new run, with drawn or with given weights.
StartPoint Begin(const Graph& graph, const ModelLayout& layout, const RunConfig& config,
                 const TrainRequest& request) {
  StartPoint start = Fresh(graph, config.seed);
  const std::string& from = GivenWeights(config, request);
  if (from.empty()) return start;
  start.file = FindWeights(from).string();
  if (config.weights.except.empty()) {
    Checkpoint given = LoadWeights(start.file, layout);
    start.weights = std::move(given.weights);
    start.state = std::move(given.state);
  } else {
    const int64_t left = CopyWeights(start.file, layout, config.weights.except,
                                     start.weights.data(), start.state.data());
    log::Info("weights of {}; re-initialised: {} ({})", from,
              fmt::join(config.weights.except, ", "), Counted(left, "number"));
  }
  return start;
}

// Keeps the node map of the resumed run, so that all-reduces add in the same order even if the ranks have moved to
// other nodes.
void FollowNodesOf(const ExecutionPlan& before, ExecutionPlan& plan) {
  if (before.node_of.size() != plan.node_of.size() || before.node_of == plan.node_of) return;
  log::Info("{} goes by the nodes of the run before ({}), not by today's ({}): the same bits",
            plan.collective, fmt::join(before.node_of, " "), fmt::join(plan.node_of, " "));
  plan.node_of = before.node_of;
}

// Keeps what the compressor cost in the resumed simulation, so that virtual time goes on as it was.
void FollowCostOf(const ExecutionPlan& before, ExecutionPlan& plan) {
  const CompressCost &old_cost = before.compress_cost, &new_cost = plan.compress_cost;
  if (old_cost.compressor != new_cost.compressor || old_cost.samples == new_cost.samples) return;
  log::Info("{} costs what it did in the run before ({}), not what {} says now",
            old_cost.compressor, old_cost.file, new_cost.file);
  plan.compress_cost = old_cost;
}

}  // namespace

StartPoint FindStart(const Graph& graph, Dataset& data, const RunConfig& config,
                     const TrainRequest& request, const RunFolder& folder, RunTime time) {
  const ModelLayout layout = ModelLayoutOf(graph, data);
  StartPoint start;
  if (auto checkpoint = ResumeFrom(folder.checkpoints(), request.resume, layout)) {
    start = Resumed(std::move(*checkpoint), graph, data, config, time);
    start.in_own_folder = GoesOnIn(folder.path(), request.resume);
  } else {
    start = Begin(graph, layout, config, request);
  }
  start.so_far.steps = {config.batch, data.size(Split::kTrain), start.step_offset};
  return start;
}

void FollowPlanOf(const StartPoint& start, const RunConfig& config, ExecutionPlan& plan) {
  if (!start.plan) return;
  if (config.threads == 0) plan.threads = start.plan->threads;
  if (SameKernels(plan, *start.plan)) plan.kernels = start.plan->kernels;
  plan.chunk_bytes = start.plan->chunk_bytes;
  FollowNodesOf(*start.plan, plan);
  const std::vector<Range>& buckets = start.plan->buckets;
  if (PlansByTime(config) && !buckets.empty() &&
      HasBucketsFor(*start.plan, config, buckets.back().end)) {
    plan.buckets = buckets;
    plan.measured_for = start.plan->measured_for;
    plan.predicted_seconds = start.plan->predicted_seconds;
    plan.compute_seconds = start.plan->compute_seconds;
    plan.sum_seconds = start.plan->sum_seconds;
  }
  FollowCostOf(*start.plan, plan);
  ExecutionPlan before = *start.plan;
  if (!BucketsMatter(config, before, plan)) before.buckets = plan.buckets;
  const std::string differences = Differences(before, plan);
  if (differences.empty()) return;
  log::Warning("not bit-equal to the undisturbed run: its plan differs ({})", differences);
}

void ForgetUnknownKernels(const Graph& graph, ExecutionPlan& plan) {
  for (const GraphLayer& layer : graph.layers()) {
    const auto named = plan.kernels.find(layer.name);
    if (named == plan.kernels.end()) continue;
    const std::vector<KernelEntry>& known =
        KernelRegistry::Of(layer.type, DeviceKindOf(plan.device));
    const auto same = [&](const KernelEntry& entry) {
      return entry.implementation == KernelName(named->second).implementation;
    };
    if (std::any_of(known.begin(), known.end(), same)) continue;
    log::Warning("not bit-equal to the undisturbed run: its kernel '{}' of layer '{}' is gone",
                 named->second, layer.name);
    plan.kernels.erase(named);
  }
}

StartPoint BroadcastStart(Transport& transport, StartPoint start) {
  if (transport.size() == 1) return start;
  const std::string bytes = Broadcast(transport, transport.rank() == 0 ? ToBytes(start) : "");
  return transport.rank() == 0 ? std::move(start) : FromBytes<StartPoint>(bytes);
}

}  // namespace dtrain
