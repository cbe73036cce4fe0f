#include "framework/setup/run_exchange.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "framework/comm/collective.h"
#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/text.h"
#include "framework/strategies/sync/advice.h"
#include "framework/strategies/sync/merging.h"

namespace dtrain {
namespace {

// Returns the node of each worker when nodes of cluster.per_node are filled one after the other.
std::vector<int> BlocksOf(const RunConfig& config) {
  const int per_node = config.cluster.per_node();
  if (config.workers % per_node != 0) {
    throw ConfigError(fmt::format("{} cannot be shared out to nodes of {}",
                                  Counted(config.workers, "worker"), per_node),
                      "cluster.per_node must divide the number of workers");
  }
  return NodesInOrder(static_cast<int>(config.workers), per_node);
}

// Returns the hosts, if they are known and cluster.per_node does not divide a host into several nodes.  In that case,
// and in a simulation, returns the nodes that the config describes.
std::vector<int> RankNodesOf(const RunConfig& config, const Placement& placement) {
  const std::vector<int>& hosts = config.rank_hosts;
  const std::vector<int>& nodes = placement.node_of;
  const bool known = hosts.size() == static_cast<size_t>(placement.ranks());
  if (known && std::equal(nodes.begin(), nodes.end(), hosts.begin())) return hosts;
  return NodesOfRanks(placement, config.cluster.per_node());
}

// True if entries are selected from the whole model, which is then all-reduced at once.
bool SelectsFromAll(const RunConfig& config) {
  return config.strategy->traits().lockstep && config.compress.sends_entries() &&
         config.compress.scope == Compressor::Scope::kModel;
}

std::string MeasuredFor(const RunConfig& config, const std::string& schedule) {
  const CompressConfig& compress = config.compress;
  const std::string way =
      !compress.on()
          ? config.collective
          : fmt::format("{} by {}", compress.name,
                        compress.sends_entries() ? compress.exchange : config.collective);
  return fmt::format("{}, {}, {}", schedule, Counted(config.workers, "worker"), way);
}

// True if each bucket consists of whole layer gradients, and the buckets contain all of them.
bool AreBuckets(const std::vector<Range>& buckets, const LayerGradients& layer_gradients) {
  int64_t begin = 0;
  size_t bucket = 0;
  for (const Range& gradient : layer_gradients.ranges) {
    if (bucket == buckets.size() || buckets[bucket].begin != begin) return false;
    if (gradient.end < buckets[bucket].end) continue;
    if (gradient.end > buckets[bucket].end) return false;
    begin = buckets[bucket++].end;
  }
  return bucket == buckets.size();
}

}  // namespace

LayerGradients LayerGradientsOf(const Graph& graph) {
  LayerGradients layer_gradients;
  for (auto layer = graph.layers().rbegin(); layer != graph.layers().rend(); ++layer) {
    if (!layer->param_range.empty()) layer_gradients.ranges.push_back(layer->param_range);
  }
  return layer_gradients;
}

LayerGradients LayerGradientsOf(const ModelProfile& profile) {
  LayerGradients layer_gradients;
  for (auto layer = profile.layers.rbegin(); layer != profile.layers.rend(); ++layer) {
    if (layer->params == 0) continue;
    const int64_t begin = layer_gradients.total();
    layer_gradients.ranges.push_back({begin, begin + layer->params});
  }
  return layer_gradients;
}

std::vector<Range> BucketsOf(const RunConfig& config, const LayerGradients& layer_gradients) {
  if (SelectsFromAll(config)) return {{0, layer_gradients.total()}};
  return config.strategy->Buckets(layer_gradients);
}

bool PlansByTime(const RunConfig& config) {
  return config.strategy->PlansByTime() && config.workers > 1 && !SelectsFromAll(config);
}

std::string MeasuredFor(const RunConfig& config) {
  return MeasuredFor(config, config.strategy_name + config.strategy->PlanningRule());
}

std::string SumsBy(const RunConfig& config) {
  const CompressConfig& compress = config.compress;
  if (compress.rounds()) return fmt::format("{} by {}", compress.name, config.collective);
  if (!compress.selects()) return config.collective;
  return fmt::format("{} {} by {}", compress.name, compress.density, compress.exchange);
}

bool HasBucketsFor(const ExecutionPlan& plan, const RunConfig& config, int64_t total) {
  return plan.measured_for == MeasuredFor(config) && !plan.buckets.empty() &&
         plan.buckets.back().end == total;
}

std::string ScheduleOf(const ExecutionPlan& plan, const RunConfig& config,
                       const LayerGradients& layer_gradients) {
  if (config.strategy_name != kAutoStrategy || !PlansByTime(config)) return "";
  if (!AreBuckets(plan.buckets, layer_gradients)) return "";
  for (const std::string& name : ScheduleNames()) {
    if (plan.measured_for == MeasuredFor(config, name)) return name;
  }
  if (!plan.measured_for.empty()) return "";
  if (plan.workers != config.workers || plan.collective != config.collective) return "";
  for (const std::string& name : ScheduleNames()) {
    if (plan.buckets == BucketsOfSchedule(name, layer_gradients)) return name;
  }
  return "";
}

void ResolveBuckets(const RunConfig& config, const LayerGradients& layer_gradients,
                    ExecutionPlan& plan) {
  const bool by_time = PlansByTime(config);
  const bool fits = HasBucketsFor(plan, config, layer_gradients.total()) &&
                    AreBuckets(plan.buckets, layer_gradients);
  if (by_time && (fits || !ScheduleOf(plan, config, layer_gradients).empty())) return;
  if (by_time && config.plan_is_file()) {
    log::Warning("{} has no buckets for this run ({}): they are planned anew", config.plan,
                 MeasuredFor(config));
  }
  plan.buckets = by_time ? std::vector<Range>() : BucketsOf(config, layer_gradients);
  plan.measured_for.clear();
  plan.predicted_seconds = plan.compute_seconds = plan.sum_seconds = 0;
}

bool BucketsMatter(const RunConfig& config, const ExecutionPlan& before, const ExecutionPlan& now) {
  return before.collective != "ordered" || now.collective != "ordered" ||
         config.compress.FollowsBuckets();
}

void DecideBuckets(const RunConfig& config, LayerGradients layer_gradients, ExecutionPlan& plan) {
  // Workers that clip their own gradient send nothing before all of it is ready.
  if (config.compress.clip_norm > 0 && layer_gradients.timed()) {
    std::fill(layer_gradients.ready.begin(), layer_gradients.ready.end(),
              layer_gradients.ready.back());
  }
  plan.buckets = BucketsOf(config, layer_gradients);
  if (!layer_gradients.timed()) return;
  plan.measured_for = MeasuredFor(config);
  plan.predicted_seconds = PredictStep(layer_gradients, plan.buckets);
  plan.compute_seconds = layer_gradients.ready.back();
  plan.sum_seconds = 0;
  for (const Range& bucket : plan.buckets) {
    plan.sum_seconds +=
        layer_gradients.reduce_seconds(bucket.size() * static_cast<int64_t>(sizeof(float)));
  }
}

std::string DescribeBuckets(const RunConfig& config, const LayerGradients& layer_gradients,
                            const ExecutionPlan& plan) {
  return fmt::format(
      "{}: {} for the gradients of {}, by measured times; a step should take {:.4f} s, {:.4f} s of "
      "it to compute",
      config.strategy_name, Counted(static_cast<int64_t>(plan.buckets.size()), "bucket"),
      Counted(static_cast<int64_t>(layer_gradients.ranges.size()), "layer"), plan.predicted_seconds,
      layer_gradients.ready.back());
}

Placement PlacementOf(const RunConfig& config) {
  Placement placement = config.strategy->Place(static_cast<int>(config.workers));
  if (placement.nodes() == 0) return placement;
  placement.node_of = config.node_of.empty() ? BlocksOf(config) : config.node_of;
  return placement;
}

void PlaceOnHosts(const std::vector<std::string>& hosts, RunConfig& config) {
  const auto workers = static_cast<size_t>(config.workers);
  DT_CHECK(hosts.size() >= workers) << hosts.size() << " hosts";
  std::map<std::string, int> numbers;  // numbered in the order of their lowest ranks
  config.rank_hosts.clear();
  for (const std::string& host : hosts) {
    const int next = static_cast<int>(numbers.size());
    config.rank_hosts.push_back(numbers.try_emplace(host, next).first->second);
  }
  if (config.strategy->Place(static_cast<int>(workers)).nodes() == 0) return;
  if (!config.cluster.per_node_given) {
    config.node_of.assign(config.rank_hosts.begin(),
                          config.rank_hosts.begin() + static_cast<std::ptrdiff_t>(workers));
    return;
  }
  config.node_of = BlocksOf(config);
  for (size_t worker = 1; worker < workers; ++worker) {
    if (config.node_of[worker] != config.node_of[worker - 1]) continue;
    if (hosts[worker] == hosts[worker - 1]) continue;
    throw ConfigError(
        fmt::format("cluster.per_node is {}, but workers {} and {} of one node are on hosts {} "
                    "and {}",
                    config.cluster.per_node(), worker - 1, worker, hosts[worker - 1],
                    hosts[worker]),
        "start as many workers on each host, one host after the other, or leave the key out");
  }
}

std::vector<int> PlanNodesOf(const RunConfig& config) {
  if (config.workers == 1 || !GoesByNodes(config.collective)) return {};
  if (!config.strategy->traits().collectives) return {};
  const Placement placement = config.strategy->Place(static_cast<int>(config.workers));
  if (config.cluster.per_node_given) return NodesOfRanks(placement, config.cluster.per_node());
  return RankNodesOf(config, placement);
}

BoundarySchedule BoundaryScheduleOf(const RunConfig& config, int64_t epoch_samples,
                                    int64_t step_offset) {
  const Strategy::Boundaries boundaries = config.strategy->boundaries(config.compress);
  BoundarySchedule rule{.epoch_samples = epoch_samples,
                        .batch = config.batch,
                        .evaluate_every_epochs = config.evaluate.every_epochs,
                        .evaluate_every_steps = config.evaluate.every_steps,
                        .checkpoint_every_epochs = config.checkpoint.every_epochs,
                        .checkpoint_every_steps = config.checkpoint.every_steps,
                        .strategy_every_epochs = boundaries.every_epochs,
                        .strategy_after_steps = boundaries.after_steps,
                        .last_samples = 0,
                        .step_offset = step_offset};
  rule.last_samples = rule.SamplesOfEpochs(config.epochs);
  if (config.max_steps > 0) {
    rule.last_samples = std::min(rule.last_samples, rule.SamplesOf(config.max_steps));
  }
  return rule;
}

ExchangeSpec ExchangeOf(const RunConfig& config, const ArenaLayout& layout,
                        LayerGradients layer_gradients, const BoundarySchedule& rule) {
  ExchangeSpec spec;
  spec.layout = &layout;
  spec.strategy = config.strategy.get();
  spec.actors = {PlacementOf(config),         layout.size(),   BucketsOf(config, layer_gradients),
                 config.solver.clip_norm > 0, config.compress, !config.cluster.deaths.empty()};
  spec.seed = config.seed;
  spec.layer_gradients = std::move(layer_gradients);
  spec.solver = config.solver;
  spec.epochs = static_cast<double>(config.epochs);
  spec.rule = rule;
  spec.collective = config.collective;
  spec.overlap_buckets = config.overlap_buckets;
  spec.plan_nodes = PlanNodesOf(config);
  spec.rank_nodes = RankNodesOf(config, spec.placement());
  spec.window = config.window;
  spec.record = config.record;
  spec.timeline = config.timeline;
  return spec;
}

ExchangeSpec ExchangeOf(const RunConfig& config, const Graph& graph, const ExecutionPlan& plan,
                        const BoundarySchedule& rule) {
  ExchangeSpec spec = ExchangeOf(config, graph.weights(), LayerGradientsOf(graph), rule);
  spec.actors.buckets = plan.buckets;
  spec.collective = plan.collective;
  spec.chunk_bytes = plan.chunk_bytes;
  spec.plan_nodes = plan.node_of;
  return spec;
}

}  // namespace dtrain
