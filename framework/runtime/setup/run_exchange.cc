#include "framework/runtime/setup/run_exchange.h"

#include <algorithm>

namespace dtrain {

GradientPieces PiecesOf(const Graph& graph) {
  GradientPieces pieces;
  for (auto layer = graph.layers().rbegin(); layer != graph.layers().rend(); ++layer) {
    if (!layer->param_range.empty()) pieces.ranges.push_back(layer->param_range);
  }
  return pieces;
}

GradientPieces PiecesOf(const ModelProfile& profile) {
  GradientPieces pieces;
  for (auto layer = profile.layers.rbegin(); layer != profile.layers.rend(); ++layer) {
    if (layer->params == 0) continue;
    const int64_t begin = pieces.total();
    pieces.ranges.push_back({begin, begin + layer->params});
  }
  return pieces;
}

Placement PlacementOf(const RunConfig& config) {
  return config.strategy->Place(static_cast<int>(config.workers));
}

RestRule RestRuleOf(const RunConfig& config, int64_t epoch_samples) {
  RestRule rule{.epoch_samples = epoch_samples,
                .batch = config.batch,
                .evaluate_every_epochs = config.evaluate_every_epochs,
                .checkpoint_every_epochs = config.checkpoint.every_epochs,
                .checkpoint_every_steps = config.checkpoint.every_steps,
                .last_samples = config.epochs * epoch_samples};
  if (config.max_steps > 0) {
    rule.last_samples = std::min(rule.last_samples, rule.SamplesOf(config.max_steps));
  }
  return rule;
}

ExchangeSpec ExchangeOf(const RunConfig& config, const ArenaLayout& layout, GradientPieces pieces,
                        const RestRule& rule) {
  ExchangeSpec spec;
  spec.layout = &layout;
  spec.strategy = config.strategy.get();
  spec.actors = {PlacementOf(config), layout.size(), config.strategy->Buckets(pieces),
                 config.solver.clip_norm > 0, config.compress};
  spec.seed = config.seed;
  spec.pieces = std::move(pieces);
  spec.solver = config.solver;
  spec.epochs = static_cast<double>(config.epochs);
  spec.rule = rule;
  spec.collective = config.collective;
  spec.record = config.record;
  spec.timeline = config.timeline;
  return spec;
}

ExchangeSpec ExchangeOf(const RunConfig& config, const Graph& graph, const ExecutionPlan& plan,
                        const RestRule& rule) {
  ExchangeSpec spec = ExchangeOf(config, graph.weights(), PiecesOf(graph), rule);
  spec.actors.buckets = plan.buckets;
  spec.collective = plan.collective;
  spec.chunk_bytes = plan.chunk_bytes;
  return spec;
}

}  // namespace dtrain
