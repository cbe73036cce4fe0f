#include "framework/train/dry_run.h"

#include <algorithm>
#include <utility>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/comm/local/local_world.h"
#include "framework/core/log.h"
#include "framework/core/progress_display.h"
#include "framework/data/batches.h"
#include "framework/device/cpu/threads.h"
#include "framework/evaluate/run_evaluation.h"
#include "framework/exchange/reducer.h"
#include "framework/setup/run_exchange.h"
#include "framework/setup/run_setup.h"
#include "framework/setup/schedule_profile.h"
#include "framework/train/auto_strategy.h"

namespace dtrain {
namespace {

constexpr int64_t kFloat = sizeof(float);

void AddVectors(const Actor& actor, int64_t solver_vectors, RankMemory& memory) {
  for (const VectorSpec& vector : actor.Vectors()) {
    const int64_t bytes = vector.range.size() * kFloat;
    switch (vector.role) {
      case VectorRole::kMaster:
        memory.solver += solver_vectors * bytes;
        [[fallthrough]];
      case VectorRole::kWeights:
        memory.weights += bytes;
        break;
      case VectorRole::kGradient:
        memory.gradients += bytes + Reducer::kTailSize * kFloat;
        break;
      default:
        memory.exchange += bytes;
    }
  }
}

RankMemory MemoryOf(const RunConfig& config, const RunInputs& inputs,
                    const BoundarySchedule& rule) {
  RankMemory memory;
  const ExchangeSpec spec =
      ExchangeOf(config, inputs.graph->weights(), LayerGradientsOf(*inputs.graph), rule);
  const auto vectors = static_cast<int64_t>(config.solver.solver->StateNames().size());
  for (const ActorId id : spec.placement().ActorsOf(0)) {
    AddVectors(*config.strategy->MakeActor(id, spec.actors), vectors, memory);
  }
  memory.activations = static_cast<int64_t>(inputs.net->bytes());
  for (const FieldSpec& field : inputs.dataset->fields()) {
    const int64_t samples = inputs.sampler->MaxShare(static_cast<int>(config.workers));
    memory.batches += Prefetcher::kDepth * samples * field.sample_shape.count() *
                      static_cast<int64_t>(SizeOf(field.dtype));
  }
  return memory;
}

// Plans by the times of `strategy.profile: FILE`.  Without a file the buckets stay open, since only a run measures
// times.
void PlanByProfile(Transport& transport, DryRun& run) {
  RunConfig& config = run.config;
  if (!run.inputs.plan.buckets.empty() || !PlansByTime(config) || config.profile == "measure")
    return;
  const LayerGradients layer_gradients = LayerGradientsFrom(ReadProfile(config.profile), config);
  config = ResolveAutoStrategy(config, layer_gradients, transport);
  if (PlansByTime(config)) {
    DecideBuckets(config, layer_gradients, run.inputs.plan);
  } else {
    run.inputs.plan.buckets = BucketsOf(config, layer_gradients);
  }
}

RunInfo InfoOf(const RunConfig& config, const RunInputs& inputs) {
  const Dataset& data = *inputs.dataset;
  RunInfo info;
  info.train_samples = data.size(Split::kTrain);
  info.test_samples = data.size(Split::kTest);
  if (data.has_validation()) info.validation_samples = data.size(Split::kValidation);
  info.parameters = inputs.graph->weights().size();
  info.frozen = FrozenText(*inputs.graph);
  info.plan = inputs.plan;
  info.buckets_open = inputs.plan.buckets.empty();
  info.begin = inputs.start.position;
  info.start_file = inputs.start.file;
  info.share = inputs.sampler->ShareOf(0, 0, static_cast<int>(config.workers)).share.size();
  const BoundarySchedule rule =
      BoundaryScheduleOf(config, info.train_samples, inputs.start.step_offset);
  info.steps_per_epoch = rule.steps_per_epoch();
  info.last_step = rule.StepsOf(rule.last_samples);
  info.memory = MemoryOf(config, inputs, rule);
  DescribeRun(config, *inputs.graph, inputs.plan, info.summary);
  const auto samples = static_cast<double>(rule.last_samples);
  info.summary.epochs = samples / static_cast<double>(info.train_samples);
  info.summary.steps = samples / static_cast<double>(config.batch);
  return info;
}

}  // namespace

DryRun MakeDryRun(const RunConfig& config, const TrainRequest& request,
                  const std::vector<RankCpus>& cpus) {
  for (const std::string& warning : config.warnings) log::Warning("{}", warning);
  for (const std::string& note : config.notes) log::Info("{}", note);
  const BusyProgress loading("loading data");
  const bool resumes = request.resume != "none";
  RunFolder(config.output).CheckFree(GoesOnIn(config.output, request.resume));
  const std::unique_ptr<Transport> alone = LocalWorld(1).Connect(0);
  DryRun run{.config = ResolveAutoStrategy(config, request, *alone)};
  LoadInputs(run.config, /*computes=*/true, run.inputs);
  TellModel(*run.inputs.graph);
  const auto workers = static_cast<int>(config.workers);
  DecideInputs(run.config, request, RunFolder(config.output), ThreadsByRule(cpus, workers),
               run.inputs);
  const BoundarySchedule rule = BoundaryScheduleOf(
      run.config, run.inputs.dataset->size(Split::kTrain), run.inputs.start.step_offset);
  PlanByProfile(*alone, run);
  run.info = InfoOf(run.config, run.inputs);
  run.info.finished =
      resumes && run.inputs.start.in_own_folder &&
      TellFinished(RunFolder(run.config.output), run.config, run.inputs.graph->metric_names(),
                   run.inputs.start.position, run.inputs.start.so_far, rule);
  const std::string crowding = CrowdingOf(cpus, workers, run.inputs.plan.threads);
  if (!crowding.empty()) log::Warning("{}", crowding);
  TellDevice(run.config);
  TellData(run.config, *run.inputs.dataset);
  return run;
}

}  // namespace dtrain
