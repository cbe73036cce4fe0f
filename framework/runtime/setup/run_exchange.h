// The exchange of a config's run: who takes part, when it pauses, and the one description of it
// that real, simulated and replayed runs are made from.
#pragma once

#include <string>
#include <vector>

#include "framework/core/execution_plan.h"
#include "framework/core/model_profile.h"
#include "framework/exchange/exchange_spec.h"
#include "framework/nn/graph.h"
#include "framework/runtime/setup/run_config.h"

namespace dtrain {

// The gradient layers' gradients of a model: one a layer with parameters, in the order of the backward pass.
LayerGradients LayerGradientsOf(const Graph& graph);
LayerGradients LayerGradientsOf(const ModelProfile& profile);

// What is sent together: as the strategy says, or all at once where entries are selected from the
// whole model.
std::vector<Range> BucketsOf(const RunConfig& config, const LayerGradients& layer_gradients);
// Whether that goes by the times of `layers' gradients` (Strategy::PlansByTime).
bool PlansByTime(const RunConfig& config);
// Where it does: for which strategy, key and way to sum the buckets of a plan are measured.
std::string MeasuredFor(const RunConfig& config);
// How its buckets are summed, as a profile says it (SumProfile::by).
std::string SumsBy(const RunConfig& config);
// Whether these buckets can be taken over: they are for the same, and cover `total` elements.
bool HasBucketsFor(const ExecutionPlan& plan, const RunConfig& config, int64_t total);
// For a config that leaves it to the run (auto): the schedule that this plan is of, as that run has
// chosen or named it; "" where it is of none, or was made for others.  Only a schedule by time notes for
// what; any other is known by its buckets.
std::string ScheduleOf(const ExecutionPlan& plan, const RunConfig& config,
                       const LayerGradients& layer_gradients);
// Whether other buckets give other bits: but for canonical sums they do.
bool BucketsMatter(const RunConfig& config, const ExecutionPlan& before, const ExecutionPlan& now);
// `plan: FILE`: its buckets stay where they can be taken over.  Else they are the strategy's, or none
// where they have yet to be planned by time, with a warning.
void ResolveBuckets(const RunConfig& config, const LayerGradients& layer_gradients,
                    ExecutionPlan& plan);
// Where it does: the buckets by the times of `layers' gradients`, and how long a step then takes.  Without times
// they are those of a plan that nobody has measured yet.
void DecideBuckets(const RunConfig& config, LayerGradients layer_gradients, ExecutionPlan& plan);
std::string DescribeBuckets(const RunConfig& config, const LayerGradients& layer_gradients,
                            const ExecutionPlan& plan);

// Which ranks are workers and servers, and which workers share a node where the strategy has actors
// for nodes: as PlaceOnHosts found, else blocks of cluster.per_node.  Throws ConfigError where the
// workers are no whole blocks.
Placement PlacementOf(const RunConfig& config);

// Notes the host of each rank and, where the strategy has actors for nodes, which workers share a node: all workers
// of a host or, where cluster.per_node is given, blocks of that size.  Throws ConfigError where a block would span
// hosts.
void PlaceOnHosts(const std::vector<std::string>& hosts, RunConfig& config);

// The node of each rank by which the collective's plan goes: blocks of cluster.per_node where it is given,
// else as in ExchangeSpec::rank_nodes.  Empty where there is no such plan.
std::vector<int> PlanNodesOf(const RunConfig& config);

// When the run pauses; `epoch_samples` is the size of the training set.
BoundarySchedule BoundaryScheduleOf(const RunConfig& config, int64_t epoch_samples,
                                    int64_t step_offset = 0);

// What the config says of its exchange; the start is the caller's to add.  `layout` outlives the
// spec, as does the config.
ExchangeSpec ExchangeOf(const RunConfig& config, const ArenaLayout& layout,
                        LayerGradients layer_gradients, const BoundarySchedule& rule);
// The same for a model, which outlives the spec, with what its plan has decided.
ExchangeSpec ExchangeOf(const RunConfig& config, const Graph& graph, const ExecutionPlan& plan,
                        const BoundarySchedule& rule);

}  // namespace dtrain
