// Describes the exchange of a config's run: its ranks, its boundaries, and the ExchangeSpec from which real, simulated
// and replayed runs are made.
#pragma once

#include <string>
#include <vector>

#include "framework/core/execution_plan.h"
#include "framework/core/model_profile.h"
#include "framework/exchange/exchange_spec.h"
#include "framework/nn/graph.h"
#include "framework/setup/run_config.h"

namespace dtrain {

// Returns the layer gradients of a model: one for each layer with parameters, in the order of the backward pass.
LayerGradients LayerGradientsOf(const Graph& graph);
LayerGradients LayerGradientsOf(const ModelProfile& profile);

// Returns the buckets: those of the strategy, or a single one if entries are selected from the whole model.
std::vector<Range> BucketsOf(const RunConfig& config, const LayerGradients& layer_gradients);
// True if the buckets are planned by the times of the layer gradients (Strategy::PlansByTime).
bool PlansByTime(const RunConfig& config);
// Returns, for a plan by time, the strategy, number of workers and all-reduce that its times were measured for, as
// text.
std::string MeasuredFor(const RunConfig& config);
// Returns how its buckets are all-reduced, in a profile's words (SumProfile::by).
std::string SumsBy(const RunConfig& config);
// True if the buckets of `plan` were measured for this configuration (MeasuredFor) and cover `total` elements.
bool HasBucketsFor(const ExecutionPlan& plan, const RunConfig& config, int64_t total);
// Returns, for a config with strategy `auto`, the schedule of `plan`, as the run that made it chose or named it.
// Returns "" if the plan has none, or was made for another configuration.  Only a schedule by time has MeasuredFor in
// the plan; any other is recognised by its buckets.
std::string ScheduleOf(const ExecutionPlan& plan, const RunConfig& config,
                       const LayerGradients& layer_gradients);
// True if other buckets change the bits of the result: always, except for canonical sums (collective `ordered`).
bool BucketsMatter(const RunConfig& config, const ExecutionPlan& before, const ExecutionPlan& now);
// Keeps the buckets of `plan: FILE` if they fit this run.  Otherwise sets the strategy's; buckets by time are left
// empty, with a warning, until they are planned.
void ResolveBuckets(const RunConfig& config, const LayerGradients& layer_gradients,
                    ExecutionPlan& plan);
// Decides the buckets by the times of `layer_gradients`, and predicts the time of a step.  Without times, sets the
// buckets of a plan that does not count as measured.
void DecideBuckets(const RunConfig& config, LayerGradients layer_gradients, ExecutionPlan& plan);
std::string DescribeBuckets(const RunConfig& config, const LayerGradients& layer_gradients,
                            const ExecutionPlan& plan);

// Returns which ranks are workers and servers.  If the strategy has actors for nodes, also returns which workers share
// a node: as PlaceOnHosts found, else in blocks of cluster.per_node.  Throws ConfigError if the workers do not fill
// whole blocks.
Placement PlacementOf(const RunConfig& config);

// Notes the host of each rank and, if the strategy has actors for nodes, which workers share a node: all workers of a
// host or, if cluster.per_node is given, blocks of that size.  Throws ConfigError if a block would span hosts.
void PlaceOnHosts(const std::vector<std::string>& hosts, RunConfig& config);

// Returns the node of each rank that the collective's schedule uses: blocks of cluster.per_node if it is given, else as
// in ExchangeSpec::rank_nodes.  Empty if the collective does not use nodes.
std::vector<int> PlanNodesOf(const RunConfig& config);

// Returns when the run has boundaries; `epoch_samples` is the size of the training set.
BoundarySchedule BoundaryScheduleOf(const RunConfig& config, int64_t epoch_samples,
                                    int64_t step_offset = 0);

// Returns the exchange of this config; the caller adds `start`.  `layout` and the config must outlive the spec.
ExchangeSpec ExchangeOf(const RunConfig& config, const ArenaLayout& layout,
                        LayerGradients layer_gradients, const BoundarySchedule& rule);
// Does the same for a model, which must outlive the spec, with the decisions of its plan.
ExchangeSpec ExchangeOf(const RunConfig& config, const Graph& graph, const ExecutionPlan& plan,
                        const BoundarySchedule& rule);

}  // namespace dtrain
