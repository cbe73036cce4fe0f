#include "framework/onnx/translate_model.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "framework/core/error.h"

namespace dtrain {
namespace {

std::string NameOfOnlyHead(const Graph& graph) {
  const auto is_of_numbers = [](const GraphLayer& layer) {
    return layer.layer->score_meaning() == ScoreMeaning::kNumbers;
  };
  return std::ranges::any_of(graph.layers(), is_of_numbers) ? "outputs" : "logits";
}

// Returns the layers that `values` depend on, in their order.
std::vector<const GraphLayer*> LayersBefore(const Graph& graph, const std::vector<int>& values) {
  std::set<int> wanted(values.begin(), values.end());
  std::vector<const GraphLayer*> layers;
  for (auto it = graph.layers().rbegin(); it != graph.layers().rend(); ++it) {
    if (!wanted.contains(it->output)) continue;
    wanted.insert(it->inputs.begin(), it->inputs.end());
    layers.push_back(&*it);
  }
  std::ranges::reverse(layers);
  return layers;
}

void RefuseUnknown(const std::vector<const GraphLayer*>& layers) {
  std::vector<std::string> unknown;
  for (const GraphLayer* layer : layers) {
    if (OnnxRegistry::Find(layer->type) != nullptr) continue;
    unknown.push_back(fmt::format("'{}' (type {}, {})", layer->name, layer->type, layer->where));
  }
  if (unknown.empty()) return;
  throw UsageError(fmt::format("no translation to ONNX for {} {}",
                               unknown.size() == 1 ? "layer" : "layers", fmt::join(unknown, ", ")),
                   "a layer's translation is in layers/<type>/<type>_onnx.cc");
}

// Finds the axes that depend on the length of a sentence: those that differ between two lengths.
class Axes {
 public:
  explicit Axes(const Graph& graph) {
    const auto lock = graph.LockLayers();
    shapes_ = ShapesWith(graph, kLength);
    longer_ = ShapesWith(graph, kLength + 1);
  }

  std::vector<OnnxDim> Of(int value) const {
    const Shape &shape = shapes_[value], &longer = longer_[value];
    std::vector<OnnxDim> dims = {std::string("batch")};
    for (int axis = 1; axis < shape.rank(); ++axis) {
      if (shape[axis] == longer[axis]) {
        dims.emplace_back(shape[axis]);
      } else {
        dims.emplace_back(std::string("length"));
      }
    }
    return dims;
  }
  const Shape& ShapeOf(int value) const { return shapes_[value]; }

 private:
  static constexpr int64_t kBatch = 2, kLength = 5;

  // True if all inputs are words; other inputs have lengths that must not change.
  static bool OfSentences(const Graph& graph) {
    return std::ranges::all_of(graph.inputs(),
                               [](const FieldSpec& field) { return field.dtype == DType::kI32; });
  }

  static std::vector<Shape> ShapesWith(const Graph& graph, int64_t length) {
    std::vector<Shape> shapes;
    for (const FieldSpec& field : graph.inputs()) {
      Shape shape = field.sample_shape.Prepend(kBatch);
      if (OfSentences(graph) && shape.rank() == 2) shape[1] = length;
      shapes.push_back(shape);
    }
    return graph.ShapesFor(shapes);
  }

  std::vector<Shape> shapes_, longer_;
};

class Translation {
 public:
  explicit Translation(const OnnxModel& model) : model_(model), axes_(model.graph) {
    for (const GraphValue& value : model.graph.values()) names_.push_back(value.name);
  }

  OnnxGraph Whole(const std::vector<int>& heads) {
    const std::string only = NameOfOnlyHead(model_.graph);
    const bool is_taken = std::ranges::find(names_, only) != names_.end();
    if (heads.size() == 1 && !is_taken) names_[heads[0]] = only;
    return Towards(heads, model_.graph.name());
  }

  std::vector<OnnxGraph> AroundDecoder(const GraphLayer& layer, const OnnxDecoder& decoder) {
    std::vector<int> made;  // outputs of the encoder
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
      const int value = layer.inputs[i];
      if (i == decoder.tokens || ValueAt(value).producer < 0) continue;
      names_[value] = decoder.inputs[i];
      made.push_back(value);
    }
    std::vector<OnnxGraph> graphs = {Towards(made, model_.graph.name() + " encoder")};
    graphs.push_back(StepOf(layer, decoder));
    return graphs;
  }

 private:
  const GraphValue& ValueAt(int value) const { return model_.graph.values()[value]; }

  OnnxValue Described(int value) const {
    return {names_[value], ValueAt(value).dtype != DType::kF32, axes_.Of(value)};
  }

  OnnxGraph Towards(const std::vector<int>& heads, const std::string& name) const {
    OnnxGraph graph;
    graph.name = name;
    std::set<int> inputs;
    for (const GraphLayer* layer : LayersBefore(model_.graph, heads)) {
      Translate(*layer, graph);
      for (const int value : layer->inputs) {
        if (ValueAt(value).producer < 0) inputs.insert(value);
      }
    }
    for (const int value : inputs) graph.inputs.push_back(Described(value));
    for (const int value : heads) graph.outputs.push_back(Described(value));
    return graph;
  }

  void Translate(const GraphLayer& layer, OnnxGraph& graph) const {
    std::vector<std::string> inputs;
    for (const int value : layer.inputs) inputs.push_back(names_[value]);
    OnnxLayer to(graph, layer, model_, std::move(inputs), ShapesOf(layer), {names_[layer.output]});
    OnnxRegistry::Get("layer", layer.type).translate(to);
  }

  std::vector<Shape> ShapesOf(const GraphLayer& layer) const {
    std::vector<Shape> shapes;
    for (const int value : layer.inputs) shapes.push_back(axes_.ShapeOf(value));
    return shapes;
  }

  OnnxGraph StepOf(const GraphLayer& layer, const OnnxDecoder& decoder) const {
    OnnxGraph graph;
    graph.name = model_.graph.name() + " decoder";
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
      OnnxValue input = Described(layer.inputs[i]);
      input.name = decoder.inputs[i];
      if (i == decoder.tokens) input.shape.resize(1);
      graph.inputs.push_back(std::move(input));
    }
    OnnxLayer to(graph, layer, model_, decoder.inputs, ShapesOf(layer),
                 {"logits", decoder.next_state});
    OnnxRegistry::Get("layer", layer.type).translate(to);
    std::vector<OnnxDim> scores = axes_.Of(layer.output);
    scores.erase(scores.begin() + 1);  // one word, not a sentence
    graph.outputs = {{"logits", false, scores},
                     {decoder.next_state, false, graph.inputs[decoder.state].shape}};
    return graph;
  }

  const OnnxModel& model_;
  const Axes axes_;
  std::vector<std::string> names_;  // of the graph's values
};

}  // namespace

std::vector<int> OutputsOf(const Graph& graph) {
  std::vector<int> heads;
  const auto add = [&](int value) {
    if (std::ranges::find(heads, value) == heads.end()) heads.push_back(value);
  };
  for (const LayerRole role : {LayerRole::kLoss, LayerRole::kMetric}) {
    for (const GraphLayer& layer : graph.layers()) {
      if (layer.layer->role() == role) add(layer.inputs[0]);
    }
    if (!heads.empty()) return heads;
  }
  std::set<int> read;
  for (const GraphLayer& layer : graph.layers())
    read.insert(layer.inputs.begin(), layer.inputs.end());
  for (const GraphLayer& layer : graph.layers()) {
    if (!read.contains(layer.output)) add(layer.output);
  }
  return heads;
}

std::vector<OnnxGraph> TranslateModel(const OnnxModel& model) {
  const std::vector<int> heads = OutputsOf(model.graph);
  const auto layers = LayersBefore(model.graph, heads);
  RefuseUnknown(layers);
  for (const GraphLayer* layer : layers) {
    const OnnxDecoder& decoder = OnnxRegistry::Get("layer", layer->type).decoder;
    if (decoder.inputs.empty()) continue;
    if (heads.size() > 1 || layer->output != heads[0]) {
      throw UsageError(fmt::format(
          "decoder '{}' cannot be exported to ONNX: its scores are not the model's only output",
          layer->name));
    }
    return Translation(model).AroundDecoder(*layer, decoder);
  }
  return {Translation(model).Whole(heads)};
}

}  // namespace dtrain
