#include "framework/runtime/run/dry_run.h"

#include <algorithm>
#include <utility>

#include "framework/comm/local/local_world.h"
#include "framework/core/log.h"
#include "framework/core/progress_display.h"
#include "framework/data/batches.h"
#include "framework/exchange/reducer.h"
#include "framework/runtime/judge/run_evaluation.h"
#include "framework/runtime/run/settled_strategy.h"
#include "framework/runtime/setup/run_exchange.h"
#include "framework/runtime/setup/run_setup.h"
#include "framework/runtime/setup/schedule_profile.h"
#include "framework/runtime/weights/checkpoint_folder.h"

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

RankMemory MemoryOf(const RunConfig& config, const RunBasis& basis, const BoundarySchedule& rule) {
  RankMemory memory;
  const ExchangeSpec spec =
      ExchangeOf(config, basis.graph->weights(), PiecesOf(*basis.graph), rule);
  const auto vectors = static_cast<int64_t>(config.solver.solver->StateNames().size());
  for (const ActorId id : spec.placement().ActorsOf(0)) {
    AddVectors(*config.strategy->MakeActor(id, spec.actors), vectors, memory);
  }
  memory.activations = static_cast<int64_t>(basis.net->bytes());
  for (const FieldSpec& field : basis.dataset->fields()) {
    const int64_t samples = basis.sampler->MaxShare(static_cast<int>(config.workers));
    memory.batches += Prefetcher::kDepth * samples * field.sample_shape.count() *
                      static_cast<int64_t>(SizeOf(field.dtype));
  }
  return memory;
}

// Plans by the times of `strategy.profile: FILE`; times that the run measures itself are not known.
void PlanByProfile(Transport& transport, DryRun& run) {
  RunConfig& config = run.config;
  if (!run.basis.plan.buckets.empty() || !PlansByTime(config) || config.profile == "measure")
    return;
  const GradientPieces pieces = PiecesFrom(ReadProfile(config.profile), config);
  config = SettleStrategy(config, pieces, transport);
  if (PlansByTime(config)) {
    DecideBuckets(config, pieces, run.basis.plan);
  } else {
    run.basis.plan.buckets = BucketsOf(config, pieces);
  }
}

RunFacts FactsOf(const RunConfig& config, const RunBasis& basis) {
  const Dataset& data = *basis.dataset;
  RunFacts facts;
  facts.train_samples = data.size(Split::kTrain);
  facts.test_samples = data.size(Split::kTest);
  if (data.has_validation()) facts.validation_samples = data.size(Split::kValidation);
  facts.parameters = basis.graph->weights().size();
  facts.frozen = FrozenText(*basis.graph);
  facts.plan = basis.plan;
  facts.buckets_open = basis.plan.buckets.empty();
  facts.begin = basis.start.position;
  facts.start_file = basis.start.file;
  facts.share = basis.sampler->ShareOf(0, 0, static_cast<int>(config.workers)).share.size();
  const BoundarySchedule rule =
      BoundaryScheduleOf(config, facts.train_samples, basis.start.step_offset);
  facts.steps_per_epoch = rule.steps_per_epoch();
  facts.last_step = rule.StepsOf(rule.last_samples);
  facts.memory = MemoryOf(config, basis, rule);
  DescribeRun(config, *basis.graph, basis.plan, facts.summary);
  const auto samples = static_cast<double>(rule.last_samples);
  facts.summary.epochs = samples / static_cast<double>(facts.train_samples);
  facts.summary.steps = samples / static_cast<double>(config.batch);
  return facts;
}

}  // namespace

DryRun MakeDryRun(const RunConfig& config, const TrainRequest& request, int threads) {
  for (const std::string& warning : config.warnings) log::Warning("{}", warning);
  for (const std::string& note : config.notes) log::Info("{}", note);
  const BusyProgress loading("loading data");
  const bool resumes = request.resume != "none";
  RunFolder(config.output).CheckFree(GoesOnIn(config.output, request.resume));
  const std::unique_ptr<Transport> alone = LocalWorld(1).Connect(0);
  DryRun run{.config = SettleStrategy(config, request, *alone)};
  LoadBasis(run.config, /*computes=*/true, run.basis);
  TellModel(*run.basis.graph);
  DecideBasis(run.config, request, RunFolder(config.output), threads, run.basis);
  const BoundarySchedule rule = BoundaryScheduleOf(
      run.config, run.basis.dataset->size(Split::kTrain), run.basis.start.step_offset);
  PlanByProfile(*alone, run);
  run.facts = FactsOf(run.config, run.basis);
  run.facts.finished =
      resumes && run.basis.start.in_own_folder &&
      TellFinished(RunFolder(run.config.output), run.config, run.basis.graph->metric_names(),
                   run.basis.start.position, run.basis.start.so_far, rule);
  TellDevice(run.config);
  TellData(run.config);
  return run;
}

}  // namespace dtrain
