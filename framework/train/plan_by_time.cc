#include "framework/train/plan_by_time.h"

#include <algorithm>
#include <utility>

#include "framework/comm/gather.h"
#include "framework/core/log.h"
#include "framework/core/text.h"
#include "framework/setup/run_exchange.h"
#include "framework/setup/schedule_profile.h"
#include "framework/train/auto_strategy.h"

namespace dtrain {
namespace {

// Returns the largest slowdown factor, at least 1: pacing can only delay.
double SlowestOf(const RunConfig& config) {
  double slowest = 1;
  for (const double factor : config.cluster.SlowdownOf(static_cast<int>(config.workers))) {
    slowest = std::max(slowest, factor);
  }
  return slowest;
}

ModelProfile ModelProfileOf(const Measurement& measured, const Graph& graph, int64_t samples,
                            const RunConfig& config, const ExecutionPlan& plan) {
  ModelProfile profile{graph.name(), plan.device, samples, plan.threads, measured.layers};
  NoteReady(measured.ready, SlowestOf(config), profile);
  profile.sums.push_back(SumProfileOf(measured.sums, config));
  return profile;
}

}  // namespace

std::optional<ModelProfile> PlanByTime(Transport& transport, const Graph& graph,
                                       const BoundarySchedule& rule, const MeasuredWorker& worker,
                                       RunConfig& config, ExecutionPlan& plan) {
  const bool root = transport.rank() == 0;
  LayerGradients layer_gradients = LayerGradientsOf(graph);
  std::optional<ModelProfile> profile;
  if (config.profile != "measure") {
    if (root) {
      const ModelProfile given = ReadProfile(config.profile);
      layer_gradients = LayerGradientsFrom(given, config);
      if (given.threads != plan.threads) {
        log::Warning("{} was measured with {} a rank, the run has {}: it may not be planned well",
                     config.profile, Counted(given.threads, "thread"), plan.threads);
      }
    }
  } else {
    if (root) {
      log::Info("{}: measuring {} steps and the sums by {}", config.strategy_name, kMeasuredSteps,
                SumsBy(config));
    }
    std::optional<Measurement> measured =
        Measure(transport, ExchangeOf(config, graph, plan, rule), worker);
    if (!measured) {
      if (root) log::Info("asked to stop while measuring: the run ends after its next step");
      DecideBuckets(config, layer_gradients, plan);
      return std::nullopt;
    }
    if (root) profile = ModelProfileOf(*measured, graph, worker.batch.samples, config, plan);
    layer_gradients.ready = std::move(measured->ready);
    layer_gradients.reduce_seconds = ReduceTimeOf(measured->sums);
  }
  config = ResolveAutoStrategy(config, layer_gradients, transport);
  if (root && PlansByTime(config)) {
    DecideBuckets(config, layer_gradients, plan);
    log::Info("{}", DescribeBuckets(config, layer_gradients, plan));
  } else if (root) {
    plan.buckets = BucketsOf(config, layer_gradients);
  }
  plan = PlanFromJson(Broadcast(transport, root ? ToJson(plan) : ""), "rank 0's plan");
  return profile;
}

}  // namespace dtrain
