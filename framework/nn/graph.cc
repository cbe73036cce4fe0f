#include "framework/nn/graph.h"

#include <algorithm>

#include <fmt/format.h>

#include "framework/core/check.h"
#include "framework/nn/blocks.h"
#include "framework/nn/initializer.h"

namespace dtrain {
namespace {

std::vector<int64_t> Extents(const Shape& shape) {
  std::vector<int64_t> extents;
  for (int axis = 0; axis < shape.rank(); ++axis) extents.push_back(shape[axis]);
  return extents;
}

constexpr char kImages[] = "data";  // input of a model that is read without a data set

// The entries of `inputs`; those with classes are int32.
std::vector<FieldSpec> OwnInputs(config::Reader& root) {
  std::vector<FieldSpec> inputs;
  for (config::Reader& reader : root.List("inputs",
                                          "what the model was made for, where a data set "
                                          "does not say; or `sample`, for images")) {
    FieldSpec input;
    input.name = std::string(reader.String("name", "").Required().Help("name of the input"));
    const std::vector<int64_t> shape =
        reader.Ints("shape", {}).Min(1).Help("shape of a sample; [] for a number");
    input.sample_shape = Shape(shape);
    input.classes = reader.Int("classes", 0).Min(0).Help("int32 below this; 0: fp32 numbers");
    if (input.classes > 0) input.dtype = DType::kI32;
    inputs.push_back(std::move(input));
  }
  return inputs;
}

// `given` by a data set; else the model's own `inputs`, or images of its `sample` shape and labels.
std::vector<FieldSpec> InputsOf(config::Reader& root, const std::vector<FieldSpec>& given) {
  const std::vector<FieldSpec> own = OwnInputs(root);
  auto field = root.Ints("sample", {}).Min(1).Help("shape of the samples the model was made for");
  if (given.empty() && own.empty()) field.Required();
  const std::vector<int64_t> sample = field;
  if (!given.empty()) return given;
  if (!own.empty()) return own;
  return {{kImages, DType::kF32, Shape(sample)}, {"label", DType::kI32, {}}};
}

// Appends `specs` of one layer to an arena layout.
template <class Spec>
void Append(ArenaLayout& layout, const std::string& layer, const Spec& spec, bool decay) {
  const int64_t begin = layout.size();
  layout.entries.push_back(
      {layer + "." + spec.name, Extents(spec.shape), {begin, begin + spec.shape.count()}, decay});
}

// Whether a gradient flows into `value`: some layer before it has parameters.
bool HasGradient(const Graph& graph, int value) {
  const int producer = graph.values()[value].producer;
  if (producer < 0) return false;
  const GraphLayer& layer = graph.layers()[producer];
  return !layer.params.empty() || std::any_of(layer.inputs.begin(), layer.inputs.end(),
                                              [&](int input) { return HasGradient(graph, input); });
}

// What the layer says, less the input gradient that nobody computes: it costs what forward does.
Cost CostIn(const Graph& graph, const GraphLayer& layer, const Cost& whole) {
  for (const int input : layer.inputs) {
    if (HasGradient(graph, input)) return whole;
  }
  const double backward = layer.params.empty() ? 0 : whole.backward_flops - whole.forward_flops;
  return {whole.forward_flops, backward};
}

}  // namespace

Graph Graph::FromFile(const std::string& path, const std::vector<FieldSpec>& inputs) {
  return Read(config::Document::FromFile(path), inputs);
}

Graph Graph::FromText(const std::string& yaml, const std::string& file_name,
                      const std::vector<FieldSpec>& inputs) {
  return Read(config::Document::FromText(yaml, file_name), inputs);
}

Graph Graph::Read(config::Document document, const std::vector<FieldSpec>& inputs) {
  document.Rewrite([&](config::Tree& root, config::Diagnostics& diagnostics) {
    ExpandBlocks(inputs.empty() ? kImages : inputs[0].name, root, diagnostics);
  });
  config::Reader root = document.root();
  Graph graph;
  graph.name_ = std::string(root.String("name", "").Required().Help("name of the model"));
  graph.inputs_ = InputsOf(root, inputs);
  for (const FieldSpec& input : graph.inputs_) {
    graph.values_.push_back({input.name, input.dtype, input.sample_shape, -1, input.classes});
  }
  std::vector<config::Reader> layers = root.List("layers", "the layers in execution order");
  if (layers.empty()) root.Mistake("layers", "a model needs at least one layer");
  int previous = 0;
  for (config::Reader& reader : layers) graph.ReadLayer(reader, previous);
  document.Finish();
  graph.LayOutArenas();
  return graph;
}

int Graph::FindValue(const std::string& name) const {
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

// Reads one entry of `layers`.  `previous` is the value a layer takes when it names none; -1 after
// a mistake, so that one wrong layer is reported once.
void Graph::ReadLayer(config::Reader& reader, int& previous) {
  GraphLayer layer;
  layer.name =
      std::string(reader.String("name", "").Required().Help("name of the layer and of its output"));
  layer.type = std::string(
      reader.String("type", "").Required().OneOf(LayerRegistry::Names()).Help("kind of layer"));
  const std::string fallback = previous >= 0 ? values_[previous].name : "";
  const std::vector<std::string> names =
      reader.Strings("input", {fallback}).Help("outputs it takes; default: the previous layer's");
  const LayerEntry* entry = LayerRegistry::Find(layer.type);
  if (entry == nullptr) {
    previous = -1;
    return;
  }
  layer.layer = entry->make();
  layer.layer->Configure(reader);
  bool complete = true;
  for (const std::string& name : names) {
    const int value = FindValue(name);
    layer.inputs.push_back(value);
    if (value >= 0) continue;
    complete = false;
    if (!reader.Has("input")) continue;
    std::vector<std::string> known;
    for (const GraphValue& candidate : values_) known.push_back(candidate.name);
    reader.Mistake("input", "no earlier layer or input is called '" + name + "'",
                   SuggestName(name, known));
  }
  if (FindValue(layer.name) >= 0) {
    reader.Mistake("name", "a second layer or input is called '" + layer.name + "'");
    complete = false;
  }
  const int takes = layer.layer->input_count();
  if (takes != Layer::kAnyInputs && static_cast<int>(names.size()) != takes) {
    reader.Mistake("input", fmt::format("{} takes {} input{}, not {}", layer.type, takes,
                                        takes == 1 ? "" : "s", names.size()));
    complete = false;
  }
  if (!complete || layer.name.empty()) {
    previous = -1;
    return;
  }
  AddLayer(reader, std::move(layer));
  previous = layers_.empty() || layers_.back().output < 0 ? -1 : layers_.back().output;
}

void Graph::AddLayer(config::Reader& reader, GraphLayer layer) {
  std::vector<Shape> shapes;
  std::vector<int64_t> classes;
  for (const int value : layer.inputs) {
    shapes.push_back(values_[value].sample_shape.Prepend(1));
    classes.push_back(values_[value].classes);
  }
  GraphValue output{layer.name, DType::kF32, {}, static_cast<int>(layers_.size())};
  try {
    layer.layer->SetInputClasses(classes);
    output.sample_shape = layer.layer->InferShapes(shapes).at(0).DropBatch();
  } catch (const ShapeError& error) {
    throw ShapeError(fmt::format("{}: layer '{}' ({}): {}", reader.Where(), layer.name, layer.type,
                                 error.what()),
                     error.hint());
  }
  layer.params = layer.layer->Params();
  layer.states = layer.layer->State();
  layer.cost = CostIn(*this, layer, layer.layer->CostOf(shapes));
  layer.output = static_cast<int>(values_.size());
  values_.push_back(std::move(output));
  layers_.push_back(std::move(layer));
}

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

void Graph::LayOutArenas() {
  for (auto it = layers_.rbegin(); it != layers_.rend(); ++it) {
    it->first_param = static_cast<int>(weights_.entries.size());
    it->param_range.begin = weights_.size();
    for (const ParamSpec& spec : it->params) Append(weights_, it->name, spec, spec.weight_decay);
    it->param_range.end = weights_.size();
    it->first_state = static_cast<int>(state_.entries.size());
    for (const StateSpec& spec : it->states) Append(state_, it->name, spec, false);
  }
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

void Graph::SyncWorkers() {
  for (const GraphLayer& layer : layers_) layer.layer->SyncWorkers();
}

bool Graph::syncs_workers() const {
  return std::any_of(layers_.begin(), layers_.end(),
                     [](const GraphLayer& layer) { return layer.layer->syncs_workers(); });
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
