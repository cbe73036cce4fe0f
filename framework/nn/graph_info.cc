// Queries of a complete graph, and the changes that a run makes to it.
#include <algorithm>

#include <fmt/format.h>

#include "framework/core/check.h"
#include "framework/core/text.h"
#include "framework/nn/graph.h"
#include "framework/nn/initializer.h"

namespace dtrain {

std::vector<Shape> Graph::ShapesFor(std::span<const Shape> inputs) const {
  DT_CHECK(inputs.size() == inputs_.size())
      << inputs.size() << " of " << inputs_.size() << " inputs";
  std::vector<Shape> shapes(inputs.begin(), inputs.end());
  bool as_sampled = true;
  for (size_t i = 0; i < inputs.size(); ++i) {
    as_sampled &= inputs[i].DropBatch() == inputs_[i].sample_shape;
  }
  std::vector<Shape> taken;
  for (const GraphLayer& layer : layers_) {
    if (as_sampled) {
      shapes.push_back(values_[layer.output].sample_shape.Prepend(inputs[0][0]));
      continue;
    }
    taken.clear();
    for (const int value : layer.inputs) taken.push_back(shapes[value]);
    shapes.push_back(layer.layer->InferShapes(taken).at(0));
  }
  return shapes;
}

std::string Graph::Describe() const {
  std::string text;
  for (const GraphLayer& layer : layers_) {
    std::vector<std::string> inputs;
    for (const int value : layer.inputs) inputs.push_back(values_[value].name);
    text += fmt::format("{} {}({}) -> {}", layer.name, layer.type, Join(inputs),
                        values_[layer.output].sample_shape.ToString());
    for (const ParamSpec& spec : layer.params) {
      text += fmt::format(" {}{}", spec.name, spec.shape.ToString());
    }
    text += '\n';
  }
  return text;
}

std::vector<std::string> Graph::metric_names() const {
  std::vector<std::string> names;
  for (const GraphLayer& layer : layers_) {
    if (layer.layer->role() == LayerRole::kMetric) names.push_back(layer.name);
  }
  return names;
}

// Decides whether the layer's output has a gradient, and corrects the layer's cost: without gradients of the inputs,
// which cost as much as the forward pass, if no input has one, and without any backward pass if nothing learns.
void Graph::FollowGradient(GraphLayer& layer) {
  std::vector<Shape> shapes;
  bool from_inputs = false;
  for (const int input : layer.inputs) {
    shapes.push_back(values_[input].sample_shape.Prepend(1));
    from_inputs |= values_[input].has_gradient;
  }
  const bool learns = !layer.params.empty() && !layer.frozen;
  values_[layer.output].has_gradient = from_inputs || learns;
  layer.cost = layer.layer->CostOf(shapes);
  if (from_inputs) return;
  layer.cost.backward_flops = learns ? layer.cost.backward_flops - layer.cost.forward_flops : 0;
}

int Graph::Freeze(const std::string& pattern) {
  int frozen = 0;
  const auto keep = [](ArenaLayout& layout, int first, size_t count) {
    for (size_t e = 0; e < count; ++e) {
      layout.entries[static_cast<size_t>(first) + e].lr_factor = 0;
    }
  };
  for (GraphLayer& layer : layers_) {
    if (!layer.params.empty() && NameMatches(pattern, layer.name)) {
      layer.frozen = true;
      layer.lr_factor = 0;
      keep(weights_, layer.first_param, layer.params.size());
      keep(state_, layer.first_state, layer.states.size());
      ++frozen;
    }
    FollowGradient(layer);
  }
  return frozen;
}

void Graph::SyncWorkers() {
  for (const GraphLayer& layer : layers_) layer.layer->SyncWorkers();
}

bool Graph::syncs_workers() const {
  return std::any_of(layers_.begin(), layers_.end(),
                     [](const GraphLayer& layer) { return layer.syncs_workers(); });
}

void Graph::InitializeWeights(uint64_t seed, float* weights) const {
  for (size_t l = 0; l < layers_.size(); ++l) {
    for (size_t p = 0; p < layers_[l].params.size(); ++p) {
      const ArenaEntry& entry = weights_.entries[layers_[l].first_param + p];
      Initialize(layers_[l].params[p], seed, l, p, weights + entry.range.begin);
    }
  }
}

void Graph::InitializeState(float* state) const {
  for (const GraphLayer& layer : layers_) {
    for (size_t s = 0; s < layer.states.size(); ++s) {
      const Range range = state_.entries[layer.first_state + s].range;
      std::fill(state + range.begin, state + range.end, layer.states[s].initial);
    }
  }
}

}  // namespace dtrain
