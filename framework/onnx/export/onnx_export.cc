#include "framework/onnx/export/onnx_export.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/data/images/image_set.h"
#include "framework/data/text/sentence_pairs.h"
#include "framework/nn/graph.h"
#include "framework/onnx/file/onnx_file.h"
#include "framework/onnx/translate_model.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

using Metadata = std::map<std::string, std::string>;

std::string ToJson(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<double> OfEachChannel(const PerChannel& values, int64_t channels) {
  std::vector<double> each;
  for (int64_t c = 0; c < channels; ++c) each.push_back(values[c]);
  return each;
}

void Describe(const ImageSetSpec& spec, Metadata& metadata) {
  const int64_t channels = spec.image_shape[0];
  metadata["input"] =
      spec.numbers
          ? "normalised: (x - mean) / deviation by the first axis, float32 [batch, sample...]"
          : "normalised: (pixel / 255 - mean) / deviation, float32 [batch, C, H, W]";
  metadata["sample"] = ToJson(spec.image_shape.extents());
  metadata["mean"] = ToJson(OfEachChannel(spec.mean, channels));
  metadata["deviation"] = ToJson(OfEachChannel(spec.deviation, channels));
  metadata["classes"] = std::to_string(spec.classes);
  metadata["class_names"] = ToJson(spec.class_names);
  if (!spec.numbers) metadata["orientation"] = NameOf(spec.orientation);
  if (!spec.columns.empty()) metadata["columns"] = ToJson(spec.columns);
}

std::vector<std::string> WordsOf(const Vocabulary& vocabulary) {
  std::vector<std::string> words;
  for (int64_t i = 0; i < vocabulary.size(); ++i) {
    words.push_back(vocabulary.WordOf(static_cast<int32_t>(i)));
  }
  return words;
}

void Describe(const TextInfo& info, Metadata& metadata) {
  metadata["tokens"] =
      "source: start, words, end, then pad; token: start, then what was said last, until end";
  metadata["source_language"] = NameOf(info.source_language);
  metadata["target_language"] = NameOf(info.target_language);
  metadata["source_vocabulary"] = ToJson(WordsOf(info.source));
  metadata["target_vocabulary"] = ToJson(WordsOf(info.target));
  metadata["unknown"] = std::to_string(token::kUnknown);
  metadata["pad"] = std::to_string(token::kPad);
  metadata["start"] = std::to_string(token::kStart);
  metadata["end"] = std::to_string(token::kEnd);
}

// Returns the outputs that learn numbers: the input of a loss whose scores are these.
std::vector<std::string> NumbersOf(const Graph& graph, const OnnxGraph& onnx) {
  const std::vector<int> outputs = OutputsOf(graph);
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto learns = [&](const GraphLayer& layer) {
      return layer.layer->role() == LayerRole::kLoss && layer.inputs[0] == outputs[i] &&
             layer.layer->score_meaning() == ScoreMeaning::kNumbers;
    };
    if (std::ranges::any_of(graph.layers(), learns)) names.push_back(onnx.outputs[i].name);
  }
  return names;
}

// Appends operators that turn `answer`, an output, back into the unit of the labels.
void TurnBack(const std::string& answer, OnnxGraph& graph) {
  const std::string normalised = answer + ".normalised", scaled = answer + ".scaled";
  for (OnnxNode& node : graph.nodes) {
    std::ranges::replace(node.inputs, answer, normalised);
    std::ranges::replace(node.outputs, answer, normalised);
  }
  graph.nodes.push_back({"Mul", {normalised, "target_deviation"}, {scaled}, {}});
  graph.nodes.push_back({"Add", {scaled, "target_mean"}, {answer}, {}});
}

// Turns the answers of a model that learns numbers back, and says so.
void TurnTargetsBack(const ImageSetSpec& spec, const Graph& graph, OnnxGraph& onnx,
                     Metadata& metadata) {
  const std::vector<std::string> answers = NumbersOf(graph, onnx);
  if (!spec.numbers || spec.classes > 0 || answers.empty()) return;
  const int64_t targets = spec.target_shape.count();
  const std::vector<double> means = OfEachChannel(spec.target_mean, targets);
  const std::vector<double> deviations = OfEachChannel(spec.target_deviation, targets);
  metadata["output"] = "in the unit of the labels";
  metadata["target_mean"] = ToJson(means);
  metadata["target_deviation"] = ToJson(deviations);
  if (!spec.scales_targets()) return;
  const auto add_tensor = [&](const std::string& name, const std::vector<double>& values) {
    onnx.tensors.push_back({name, {targets}, std::vector<float>(values.begin(), values.end())});
  };
  add_tensor("target_deviation", deviations);
  add_tensor("target_mean", means);
  for (const std::string& answer : answers) TurnBack(answer, onnx);
}

// The model's inputs, and what there is to say of them.
std::vector<FieldSpec> FieldsOf(const CheckpointInfo& info, const std::string& origin,
                                Metadata& metadata) {
  metadata["model"] = info.model;
  metadata["epoch"] = std::to_string(info.position.epoch);
  metadata["step"] = std::to_string(info.position.step);
  metadata["source_revision"] = info.source_revision;
  if (!info.text.empty()) {
    constexpr int64_t kAnyLength = 4;
    const TextInfo text = TextInfoFromText(info.text, origin);
    Describe(text, metadata);
    return SentenceFields(kAnyLength, kAnyLength, text.source.size(), text.target.size());
  }
  const ImageSetSpec spec = ImageSetSpecFromText(info.images, origin);
  Describe(spec, metadata);
  return ImageFields(spec);
}

}  // namespace

std::vector<OnnxGraph> OnnxOf(const StoredWeights& stored, const std::string& origin) {
  const CheckpointInfo& info = stored.info;
  if (info.model_yaml.empty() || (info.images.empty() && info.text.empty())) {
    throw CheckpointError(
        fmt::format("{} does not say what its model is", origin),
        "take a checkpoint that this version of dtrain has written, by training on images or "
        "text, or what `dtrain export` made of it");
  }
  Metadata metadata;
  const auto fields = FieldsOf(info, origin, metadata);
  const Graph graph = Graph::FromText(info.model_yaml, origin + ": its model", fields);
  const auto weights = Arranged(stored.weights, stored.layout.parameters, graph.weights(), origin);
  const auto state = Arranged(stored.state, stored.layout.state, graph.state(), origin);
  std::vector<OnnxGraph> graphs = TranslateModel({graph, weights.data(), state.data()});
  if (!info.images.empty()) {
    TurnTargetsBack(ImageSetSpecFromText(info.images, origin), graph, graphs.front(), metadata);
  }
  for (OnnxGraph& each : graphs) each.metadata = metadata;
  return graphs;
}

std::vector<fs::path> WriteOnnx(const fs::path& output, const std::vector<OnnxGraph>& graphs) {
  if (graphs.size() == 1) {
    WriteOutput(output, OnnxBytes(graphs[0]));
    return {output};
  }
  std::string stem = output.string();
  if (output.extension() == ".onnx") stem.resize(stem.size() - std::strlen(".onnx"));
  std::vector<std::string> bytes;
  for (const OnnxGraph& graph : graphs) bytes.push_back(OnnxBytes(graph));
  const std::vector<fs::path> paths = {stem + ".encoder.onnx", stem + ".decoder.onnx"};
  for (size_t i = 0; i < paths.size(); ++i) WriteOutput(paths[i], bytes[i]);
  return paths;
}

}  // namespace dtrain
