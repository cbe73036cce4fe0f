#include "framework/nn/graph.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/core/text.h"
#include "framework/nn/blocks.h"
#include "framework/nn/labels.h"

namespace dtrain {
namespace {

constexpr char kImages[] = "data";  // name of the image input without a data set

// Reads the entries of `inputs`; those with classes are int32.
std::vector<FieldSpec> OwnInputs(config::Reader& root) {
  std::vector<FieldSpec> inputs;
  for (config::Reader& reader :
       root.List("inputs",
                 "the model's inputs if no data set defines them; for images, `sample` suffices")) {
    FieldSpec input;
    input.name = std::string(reader.String("name", "").Required().Help("name of the input"));
    const std::vector<int64_t> shape = reader.Ints("shape", {})
                                           .Min(1)
                                           .Max(kLargestExtent)
                                           .Help("shape of a sample; [] for a number");
    input.sample_shape = Shape(shape);
    input.classes = reader.Int("classes", 0)
                        .Min(0)
                        .Max(kLargestExtent)
                        .Help("number of classes of an int32 input; 0: the input is fp32");
    if (input.classes > 0) input.dtype = DType::kI32;
    inputs.push_back(std::move(input));
  }
  return inputs;
}

// Returns the inputs `given` by a data set, else the model's own `inputs`, else labels and images of its `sample`
// shape, which is stored in `sample`.
std::vector<FieldSpec> InputsOf(config::Reader& root, const std::vector<FieldSpec>& given,
                                std::vector<int64_t>& sample) {
  const std::vector<FieldSpec> own = OwnInputs(root);
  auto field = root.Ints("sample", {})
                   .Min(1)
                   .Max(kLargestExtent)
                   .Help("shape of the samples the model was made for");
  if (given.empty() && own.empty()) field.Required();
  sample = static_cast<std::vector<int64_t>>(field);
  if (!given.empty()) return given;
  if (!own.empty()) return own;
  return {{kImages, DType::kF32, Shape(sample)}, {"label", DType::kI32, {}}};
}

// Appends `specs` of one layer to an arena layout.
template <class Spec>
void Append(ArenaLayout& layout, const std::string& layer, const Spec& spec, bool decay) {
  const int64_t begin = layout.size();
  layout.entries.push_back(
      {layer + "." + spec.name, spec.shape.extents(), {begin, begin + spec.shape.count()}, decay});
}

// More numbers than any machine has memory for, yet few enough that products of smaller counts cannot overflow.
constexpr double kMostNumbers = 1e12;

double NumbersOf(const Shape& shape) {
  double numbers = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) numbers *= static_cast<double>(shape[axis]);
  return numbers;
}

// Returns the part of a layer that is too large, with its shape; "" if none is.
std::string TooLarge(const Shape& output, const std::vector<ParamSpec>& params) {
  if (NumbersOf(output) > kMostNumbers) return "its output " + output.ToString();
  for (const ParamSpec& param : params) {
    if (NumbersOf(param.shape) > kMostNumbers) return param.name + " " + param.shape.ToString();
  }
  return "";
}

// Returns "accuracy takes 2 inputs, not 1"; "" if the count is right.
std::string WrongCount(const GraphLayer& layer, size_t given) {
  if (layer.layer == nullptr) return "";
  const int takes = layer.layer->input_count();
  const bool two_or_more = takes == Layer::kTwoOrMoreInputs;
  const bool fits = two_or_more ? given >= 2 : static_cast<int>(given) == takes;
  if (takes == Layer::kAnyInputs || fits) return "";
  const std::string wanted = two_or_more ? "2 inputs or more" : Counted(takes, "input");
  return fmt::format("{} takes {}, not {}", layer.type, wanted, given);
}

// True if `name` is probably a misspelling of `known`: one letter is replaced, missing or too many, or two are swapped.
// Names of one or two letters, and names that differ in digits (conv1, conv2), count as different names.
bool IsSlip(const std::string& name, const std::string& known) {
  if (std::min(name.size(), known.size()) < 3) return false;
  const auto digits = [](std::string text) {
    std::erase_if(text, [](char c) { return c < '0' || c > '9'; });
    return text;
  };
  if (digits(name) != digits(known)) return false;
  const int distance = EditDistance(name, known);
  return distance == 1 || (distance == 2 && std::ranges::is_permutation(name, known));
}

constexpr char kNoMemory[] = "no machine has memory for that";

}  // namespace

// Holds the state while layers are read.  A layer with an error is broken: it has no value, and neither has any layer
// that takes its output; of such a layer only errors of its own keys are reported.
struct Graph::Reading {
  int previous = 0;                             // value that a layer without `input` takes
  std::unordered_map<std::string, int> values;  // by name
  std::unordered_set<std::string> broken;       // by name
  int nameless = 0;                             // broken layers without a name, not yet referred to
  std::vector<config::Reader> readers;          // of the graph's layers
  std::string data;                             // source of the inputs

  // True if `name` is, or may be, the name of a broken layer, or, if that was the use of a block, of one of its copies
  // or layers ("stage1" of "stage1.0.conv").
  bool IsBroken(const std::string& name) {
    if (broken.contains(name)) return true;
    if (values.contains(name)) return false;
    for (size_t end = name.find('.'); end != std::string::npos; end = name.find('.', end + 1)) {
      if (broken.contains(name.substr(0, end))) return true;
    }
    if (nameless == 0 || IsMisspelt(name)) return false;
    --nameless;
    broken.insert(name.substr(0, name.find('.')));
    return true;
  }

  bool IsMisspelt(const std::string& name) const {
    return std::ranges::any_of(values,
                               [&](const auto& known) { return IsSlip(name, known.first); });
  }
};

Graph Graph::FromFile(const std::string& path, const std::vector<FieldSpec>& inputs) {
  return Read(config::Document::FromFile(path), inputs, "the data");
}

Graph Graph::FromText(const std::string& yaml, const std::string& file_name,
                      const std::vector<FieldSpec>& inputs, const std::string& data) {
  return Read(config::Document::FromText(yaml, file_name), inputs, data);
}

Graph Graph::Read(config::Document document, const std::vector<FieldSpec>& inputs,
                  const std::string& data) {
  document.Rewrite([&](config::Tree& root, config::Diagnostics& diagnostics) {
    ExpandBlocks(inputs.empty() ? kImages : inputs[0].name, root, diagnostics);
  });
  config::Reader root = document.root();
  Graph graph;
  graph.name_ = std::string(root.String("name", "").Required().Help("name of the model"));
  graph.inputs_ = InputsOf(root, inputs, graph.made_for_);
  if (!graph.made_for_.empty()) graph.where_made_for_ = root.Where("sample");
  Reading reading;
  reading.data = data;
  for (const FieldSpec& input : graph.inputs_) {
    reading.values.emplace(input.name, static_cast<int>(graph.values_.size()));
    graph.values_.push_back({input.name, input.dtype, input.sample_shape, -1, input.classes});
    if (NumbersOf(input.sample_shape) <= kMostNumbers) continue;
    root.AddError("sample",
                  fmt::format("a sample of shape {} is too large", input.sample_shape.ToString()),
                  kNoMemory);
    reading.previous = -1;
    reading.broken.insert(input.name);
  }
  std::vector<config::Reader> layers = root.List("layers", "the layers in execution order");
  if (layers.empty()) root.AddError("layers", "a model needs at least one layer");
  for (config::Reader& reader : layers) graph.ReadLayer(reader, reading);
  document.Finish();
  DT_CHECK(graph.layers_.size() == layers.size()) << "a layer was left out without an error";
  graph.LayOutArenas();
  return graph;
}

// Reads one entry of `layers`.
void Graph::ReadLayer(config::Reader& reader, Reading& reading) {
  GraphLayer layer;
  layer.where = reader.Where();
  layer.name =
      std::string(reader.String("name", "").Required().Help("name of the layer and of its output"));
  layer.type = std::string(
      reader.String("type", "").Required().OneOf(LayerRegistry::Names()).Help("kind of layer"));
  const std::string name = layer.name;
  const LayerEntry* const entry = LayerRegistry::Find(layer.type);
  if (entry != nullptr) layer.layer = entry->make();
  const bool complete = FindInputs(reader, reading, layer);
  if (entry != nullptr) {
    layer.layer->Configure(reader);
    layer.lr_factor = reader.Number("lr_factor", 1)
                          .Min(0)
                          .Max(1e6)
                          .Help(
                              "multiplies the learning rate of the layer's parameters; 0: they are "
                              "frozen (a batch_norm's statistics only by weights.freeze)");
  }
  if (reading.values.contains(name)) {
    // The other keys of the layer are fine; the message concerns the name only.
    reader.AddError("name", "a second layer or input is called '" + name + "'", "", {"name"});
  }
  const bool added = complete && reader.sound() && AddLayer(reader, reading, std::move(layer));
  reading.previous = added ? static_cast<int>(values_.size()) - 1 : -1;
  if (added) return;
  if (name.empty()) {
    ++reading.nameless;
  } else {
    reading.broken.insert(name);
  }
}

// Writes layer.inputs, -1 for a missing one.  Returns false if the layer cannot be added.
bool Graph::FindInputs(config::Reader& reader, Reading& reading, GraphLayer& layer) const {
  const std::string fallback = reading.previous >= 0 ? values_[reading.previous].name : "";
  const std::vector<std::string> names =
      reader.Strings("input", {fallback})
          .Help("names of its inputs; default: the previous layer's output");
  const std::string wrong_count = WrongCount(layer, names.size());
  bool complete = wrong_count.empty();
  bool reported = false;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto value = reading.values.find(names[i]);
    layer.inputs.push_back(value == reading.values.end() ? -1 : value->second);
    const bool broken = names[i] == fallback ? reading.previous < 0 : reading.IsBroken(names[i]);
    if (layer.inputs.back() >= 0 && !broken) continue;
    complete = false;
    if (broken) continue;
    std::vector<std::string> known;
    for (const GraphValue& candidate : values_) known.push_back(candidate.name);
    const std::string what = "no earlier layer or input is called '" + names[i] + "'";
    reported = true;
    if (wrong_count.empty()) {
      reader.AddErrorOnce(what, "input", i, what, SuggestName(names[i], known));
    } else {
      reader.AddError("input", what + ", and " + wrong_count, SuggestName(names[i], known));
    }
  }
  if (!reported && !wrong_count.empty()) reader.AddError("input", wrong_count);
  return complete;
}

// Finds an input of the wrong kind.  The hint depends on the given and the wanted kind.
std::optional<Graph::WrongInput> Graph::FindWrongInput(const GraphLayer& layer) const {
  const bool compares = layer.layer->role() != LayerRole::kCompute;
  const std::string there = layer.inputs.size() > 1 ? " there" : "";
  for (size_t i = 0; i < layer.inputs.size(); ++i) {
    const GraphValue& value = values_[layer.inputs[i]];
    const InputKind takes = layer.layer->input_kind(static_cast<int>(i));
    if (takes == InputKind::kClasses && value.dtype != DType::kI32) {
      return WrongInput{
          fmt::format("input '{}' holds numbers; {} takes {}{}", value.name, layer.type,
                      compares ? "class labels" : "classes or tokens", there),
          compares ? "take the loss mean_squared_error, and no accuracy, for numbers; a table "
                     "whose labels are whole has classes with data.task: classification"
                   : ""};
    }
    if (takes == InputKind::kNumbers && value.dtype != DType::kF32) {
      const bool tokens = value.sample_shape.rank() > 0;
      return WrongInput{fmt::format("input '{}' holds {}; {} takes numbers{}", value.name,
                                    tokens ? "tokens" : "class labels", layer.type, there),
                        compares ? "the scores come first, the labels second"
                                 : "put an embedding layer before it"};
    }
  }
  return std::nullopt;
}

// Returns the layer whose key `outputs` sets the number of the value's scores: the layer that computes the value, or an
// earlier one whose outputs pass only through relu, dropout, flatten and the like.  -1: none.
int Graph::LayerOfScores(const Reading& reading, int value, int64_t scores) const {
  int producer = values_[value].producer;
  while (producer >= 0 && !reading.readers[producer].Has("outputs")) {
    const std::vector<int>& inputs = layers_[producer].inputs;
    producer = inputs.size() == 1 ? values_[inputs[0]].producer : -1;
  }
  if (producer < 0) return -1;
  const Shape& made = values_[layers_[producer].output].sample_shape;
  return made[0] == scores || made[made.rank() - 1] == scores ? producer : -1;
}

// Warns of more scores than classes: such a model trains, but the extra scores only learn that they are never right.
// Warns of one number that learns which class it is, as if classes had an order.
void Graph::WarnOfScores(const GraphLayer& loss, const Reading& reading) {
  const int64_t classes = loss.layer->label_classes();
  if (classes == 0) return;
  const Shape shape = values_[loss.inputs[0]].sample_shape.Prepend(1);
  const int64_t scores = shape[shape.rank() - 1];
  if (scores == 1 && classes > 2 && loss.layer->score_meaning() == ScoreMeaning::kNumbers) {
    warnings_.push_back(fmt::format(
        "{}: layer '{}' ({}): {} has {} classes, and the layer learns their numbers; if the labels "
        "of a table are numbers, set data.task: regression",
        loss.where, loss.name, loss.type, reading.data, classes));
  }
  if (scores <= classes || !IsLabelOf(values_[loss.inputs[1]].sample_shape.Prepend(1), shape))
    return;
  const int producer = LayerOfScores(reading, loss.inputs[0], scores);
  const bool known = producer >= 0;
  std::string warning = fmt::format(
      "{}: {} has {}, {} '{}' has {} outputs: {} of them {} never a label",
      known ? reading.readers[producer].Where("outputs") : loss.where, reading.data,
      classes == 1 ? "1 class" : fmt::format("{} classes", classes), known ? "layer" : "input",
      known ? layers_[producer].name : values_[loss.inputs[0]].name, scores, scores - classes,
      scores - classes == 1 ? "is" : "are");
  if (std::ranges::find(warnings_, warning) == warnings_.end()) {
    warnings_.push_back(std::move(warning));
  }
}

// Returns false, after reporting an error, if its shapes do not fit.
bool Graph::AddLayer(config::Reader& reader, Reading& reading, GraphLayer layer) {
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    reader.AddError("", fmt::format("layer '{}' ({}): {}", layer.name, layer.type, why), hint);
    return false;
  };
  if (const auto wrong = FindWrongInput(layer)) return refuse(wrong->what, wrong->hint);
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
  } catch (const TooFewScores& error) {
    const int64_t scores = shapes[0][shapes[0].rank() - 1];
    const int producer = LayerOfScores(reading, layer.inputs[0], scores);
    const std::string what = fmt::format("{} has {} classes, but", reading.data, error.classes);
    if (producer < 0) {
      return refuse(fmt::format("{} input '{}' has {}", what, values_[layer.inputs[0]].name,
                                Counted(scores, "score")),
                    error.hint());
    }
    const GraphLayer& last = layers_[producer];
    reading.readers[producer].AddError(
        "outputs", fmt::format("layer '{}' ({}): {} the layer has {}: set outputs: {}", last.name,
                               last.type, what, Counted(scores, "output"), error.classes));
    return false;
  } catch (const ShapeError& error) {
    return refuse(error.what(), error.hint());
  }
  layer.params = layer.layer->Params();
  const std::string too_large = TooLarge(output.sample_shape, layer.params);
  if (!too_large.empty()) return refuse(too_large + " is too large", kNoMemory);
  layer.states = layer.layer->State();
  layer.output = static_cast<int>(values_.size());
  values_.push_back(std::move(output));
  FollowGradient(layer);
  WarnOfScores(layer, reading);
  reading.values.emplace(layer.name, layer.output);
  reading.readers.push_back(reader);
  layers_.push_back(std::move(layer));
  return true;
}

void Graph::CheckTrainable(int64_t samples) const {
  // Goes backward and marks the values that reach a loss or a metric.
  std::vector<bool> to_loss(values_.size()), to_metric(values_.size());
  std::vector<std::string> errors;
  bool has_loss = false;
  double numbers = 0;
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    const LayerRole role = layer->layer->role();
    has_loss |= role == LayerRole::kLoss;
    const bool loss = role == LayerRole::kLoss || to_loss[layer->output];
    const bool metric = role == LayerRole::kMetric || to_metric[layer->output];
    for (const int input : layer->inputs) {
      if (loss) to_loss[input] = true;
      if (metric) to_metric[input] = true;
    }
    numbers += NumbersOf(values_[layer->output].sample_shape) * static_cast<double>(samples);
    const bool learns = values_[layer->output].has_gradient && role != LayerRole::kMetric;
    if (loss || (metric && !learns)) continue;
    errors.push_back(
        fmt::format("{}: the output of layer '{}' reaches no loss", layer->where, layer->name));
  }
  if (!has_loss) {
    errors = {fmt::format("{}: model '{}' has no loss layer", layers_.back().where, name_)};
  }
  std::ranges::reverse(errors);
  if (!errors.empty()) {
    throw ConfigError(Join(errors, "\n"), "add a loss layer behind it, or remove the layer");
  }
  if (numbers > kMostNumbers) {
    throw ConfigError(fmt::format("{}: {} samples of model '{}' have {:.1e} activations",
                                  layers_.front().where, samples, name_, numbers),
                      kNoMemory);
  }
  if (static_cast<double>(weights_.size()) > kMostNumbers) {
    throw ConfigError(fmt::format("{}: model '{}' has {:.1e} parameters", layers_.front().where,
                                  name_, static_cast<double>(weights_.size())),
                      kNoMemory);
  }
}

void Graph::LayOutArenas() {
  for (auto it = layers_.rbegin(); it != layers_.rend(); ++it) {
    it->first_param = static_cast<int>(weights_.entries.size());
    it->param_range.begin = weights_.size();
    for (const ParamSpec& spec : it->params) Append(weights_, it->name, spec, spec.weight_decay);
    for (size_t e = static_cast<size_t>(it->first_param); e < weights_.entries.size(); ++e) {
      weights_.entries[e].lr_factor = it->lr_factor;
    }
    it->param_range.end = weights_.size();
    it->first_state = static_cast<int>(state_.entries.size());
    for (const StateSpec& spec : it->states) Append(state_, it->name, spec, false);
  }
}

}  // namespace dtrain
