// Translates every layer's cases and every shipped model to ONNX.  The ONNX library checks each
// model and infers its shapes strictly (OnnxBytes), then the tests read it back.
// tools/onnx/compare.py runs the models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/data/images/image_set.h"
#include "framework/data/text/sentence_pairs.h"
#include "framework/nn/layer_case.h"
#include "framework/onnx/file/onnx_file.h"
#include "framework/onnx/translate_model.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A layer that has no ONNX counterpart.
class Unspeakable : public Layer {
 public:
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override { return {inputs[0]}; }
};
DTRAIN_LAYER("unspeakable", Unspeakable, "for this test");

// A model whose weights are increasing numbers in (0, 1].
struct Counted {
  explicit Counted(Graph read) : graph(std::move(read)) {
    for (int64_t i = 0; i < graph.weights().size(); ++i) weights.push_back(At(i));
    for (int64_t i = 0; i < graph.state().size(); ++i) state.push_back(At(i));
  }
  static float At(int64_t i) { return static_cast<float>(i % 97 + 1) / 97; }
  OnnxModel Model() const { return {graph, weights.data(), state.data()}; }
  std::vector<OnnxGraph> Translated() const { return TranslateModel(Model()); }

  Graph graph;
  std::vector<float> weights, state;
};

// The library does not compare a constant's values with its shape.
void Check(const OnnxGraph& graph) {
  for (const OnnxTensor& tensor : graph.tensors) {
    int64_t count = 1;
    for (const int64_t extent : tensor.shape) count *= extent;
    EXPECT_EQ(std::visit([](const auto& values) { return std::ssize(values); }, tensor.values),
              count)
        << tensor.name;
  }
  if (HasOnnx()) {
    EXPECT_GT(OnnxBytes(graph).size(), 0U);
  }
}

Counted Read(const std::string& yaml, const std::vector<FieldSpec>& fields) {
  return Counted(Graph::FromText(yaml, "test.yaml", fields));
}

const std::vector<FieldSpec> kImage = {{"data", DType::kF32, Shape{3, 8, 8}, 0},
                                       {"label", DType::kI32, Shape(), 5}};

std::vector<std::string> Operators(const OnnxGraph& graph) {
  std::vector<std::string> operators;
  for (const OnnxNode& node : graph.nodes) operators.push_back(node.op);
  return operators;
}

std::vector<std::string> Names(const std::vector<OnnxValue>& values) {
  std::vector<std::string> names;
  for (const OnnxValue& value : values) names.push_back(value.name);
  return names;
}

// Returns a model that consists of this one layer.
std::string AsModel(const std::string& type, const LayerCase& layer_case) {
  std::string inputs = "i0";
  for (size_t i = 1; i < layer_case.inputs.size(); ++i) inputs += ", i" + std::to_string(i);
  std::string keys = layer_case.yaml.substr(1, layer_case.yaml.size() - 2);
  if (!keys.empty()) keys = ", " + keys;
  return "name: one\nlayers:\n  - {name: layer, type: " + type + ", input: [" + inputs + "]" +
         keys + "}\n";
}

std::vector<FieldSpec> FieldsOf(const LayerCase& layer_case) {
  std::vector<FieldSpec> fields;
  for (size_t i = 0; i < layer_case.inputs.size(); ++i) {
    const auto& all = layer_case.input_classes;
    const int64_t classes = i < all.size() ? all[i] : 0;
    fields.push_back({"i" + std::to_string(i), classes > 0 ? DType::kI32 : DType::kF32,
                      layer_case.inputs[i].DropBatch(), classes});
  }
  return fields;
}

TEST(TranslateModel, EveryCaseOfEveryTranslatedLayerIsTakenByTheLibrary) {
  size_t cases = 0;
  for (const auto& [type, entry] : LayerCaseRegistry::All()) {
    if (OnnxRegistry::Find(type) == nullptr) continue;
    for (const LayerCase& layer_case : entry.cases) {
      SCOPED_TRACE(type + ": " + layer_case.name);
      const Counted model = Read(AsModel(type, layer_case), FieldsOf(layer_case));
      for (const OnnxGraph& graph : model.Translated()) Check(graph);
      ++cases;
    }
  }
  EXPECT_GT(cases, 60U);
}

TEST(TranslateModel, EveryShippedModelIsTakenByTheLibrary) {
  for (const auto& file :
       std::filesystem::directory_iterator(DTRAIN_SOURCE_DIR "/configs/models")) {
    SCOPED_TRACE(file.path());
    const Counted model(Graph::FromFile(file.path().string(), {}));
    const auto graphs = model.Translated();
    EXPECT_EQ(graphs.size(), file.path().stem() == "seq2seq_attention" ? 2U : 1U);
    for (const OnnxGraph& graph : graphs) Check(graph);
    EXPECT_EQ(graphs.back().outputs[0].name, "logits");
    EXPECT_EQ(graphs.back().outputs[0].shape[0], OnnxDim("batch"));
  }
}

TEST(TranslateModel, LossesMetricsAndLabelsAreLeftOut) {
  const Counted model = Read(
      "name: m\nlayers:\n"
      "  - {name: fc, type: inner_product, outputs: 5}\n"
      "  - {name: drop, type: dropout}\n"
      "  - {name: loss, type: softmax_cross_entropy, input: [drop, label]}\n"
      "  - {name: accuracy, type: accuracy, input: [drop, label]}\n",
      kImage);
  const OnnxGraph graph = model.Translated().at(0);
  EXPECT_THAT(Names(graph.inputs), ElementsAre("data"));
  EXPECT_THAT(Names(graph.outputs), ElementsAre("logits"));
  EXPECT_EQ(graph.inputs[0].shape,
            (std::vector<OnnxDim>{"batch", int64_t{3}, int64_t{8}, int64_t{8}}));
  EXPECT_THAT(Operators(graph), ElementsAre("Flatten", "Gemm", "Identity"));
  Check(graph);
}

TEST(TranslateModel, SeveralHeadsHaveTheNamesOfTheirLayers) {
  const Counted model = Read(
      "name: m\nlayers:\n"
      "  - {name: body, type: relu}\n"
      "  - {name: near, type: inner_product, input: body, outputs: 5}\n"
      "  - {name: far, type: inner_product, input: body, outputs: 5}\n"
      "  - {name: a, type: softmax_cross_entropy, input: [near, label]}\n"
      "  - {name: b, type: softmax_cross_entropy, input: [far, label]}\n",
      kImage);
  const OnnxGraph graph = model.Translated().at(0);
  EXPECT_THAT(Names(graph.outputs), ElementsAre("near", "far"));
  Check(graph);
}

TEST(TranslateModel, BatchNormTakesTheRunsStatistics) {
  const Counted model = Read(
      "name: m\nlayers:\n"
      "  - {name: bn, type: batch_norm}\n"
      "  - {name: fc, type: inner_product, outputs: 5}\n"
      "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n",
      kImage);
  const OnnxGraph graph = model.Translated().at(0);
  EXPECT_THAT(graph.nodes[0].inputs,
              ElementsAre("data", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"));
  const auto tensor = std::ranges::find(graph.tensors, "bn.running_var", &OnnxTensor::name);
  ASSERT_NE(tensor, graph.tensors.end());
  EXPECT_EQ(std::get<std::vector<float>>(tensor->values),
            (std::vector<float>{Counted::At(3), Counted::At(4), Counted::At(5)}));
}

TEST(TranslateModel, LayersWithoutTranslationAreAllNamed) {
  const Counted model = Read(
      "name: m\nlayers:\n"
      "  - {name: one, type: unspeakable}\n"
      "  - {name: two, type: unspeakable}\n"
      "  - {name: fc, type: inner_product, outputs: 5}\n"
      "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n",
      kImage);
  try {
    model.Translated();
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("for layers 'one' (type unspeakable"),
                      HasSubstr("'two' (type unspeakable"), Not(HasSubstr("inner_product"))));
  }
  EXPECT_THAT(WhatOf<UsageError>([] {
                Read("name: m\nlayers:\n  - {name: one, type: unspeakable}\n", kImage).Translated();
              }),
              HasSubstr("for layer 'one' (type unspeakable"));
}

// ONNX has the gates in the order i, o, f, g, the model in i, f, g, o.  ONNX has the directions of a layer in one
// tensor, and both biases in another.
TEST(TranslateModel, AnLstmHasTheModelsWeightsInOnnxsOrder) {
  constexpr size_t kHidden = 2, kGates = 4;
  const Counted model = Read(
      "name: m\nlayers:\n"
      "  - {name: words, type: embedding, input: source, outputs: 3}\n"
      "  - {name: rnn, type: lstm, input: [words, source], hidden: 2, layers: 2,\n"
      "     bidirectional: true, pad: 1}\n",
      {{"source", DType::kI32, Shape{5}, 7}});
  const OnnxGraph graph = model.Translated().at(0);
  Check(graph);
  const auto tensor = [&](const std::string& name) {
    const auto found = std::ranges::find(graph.tensors, name, &OnnxTensor::name);
    EXPECT_NE(found, graph.tensors.end()) << name;
    return *found;
  };
  // Appends the rows of one of the model's parameters, gate by gate.
  const auto append = [&](const std::string& name, std::vector<float>& to) {
    const auto& entries = model.graph.weights().entries;
    const auto entry = std::ranges::find(entries, "rnn." + name, &ArenaEntry::name);
    ASSERT_NE(entry, entries.end()) << name;
    const size_t size = static_cast<size_t>(entry->range.size()) / kGates;
    for (const size_t gate : {0, 3, 1, 2}) {
      const auto begin =
          model.weights.begin() + entry->range.begin + static_cast<int64_t>(gate * size);
      to.insert(to.end(), begin, begin + static_cast<int64_t>(size));
    }
  };
  for (const std::string layer : {"l0", "l1"}) {
    std::vector<float> in, state, bias;
    for (const std::string direction : {"", "_reverse"}) {
      append("weight_ih_" + layer + direction, in);
      append("weight_hh_" + layer + direction, state);
      append("bias_ih_" + layer + direction, bias);
      append("bias_hh_" + layer + direction, bias);
    }
    const int64_t rows = kGates * kHidden, features = layer == "l0" ? 3 : 2 * kHidden;
    const auto expect = [&](const std::string& what, const std::vector<int64_t>& shape,
                            const std::vector<float>& values) {
      const OnnxTensor found = tensor("rnn." + layer + "." + what);
      EXPECT_EQ(found.shape, shape) << layer << what;
      EXPECT_EQ(std::get<std::vector<float>>(found.values), values) << layer << what;
    };
    expect("weight_ih", {2, rows, features}, in);
    expect("weight_hh", {2, rows, kHidden}, state);
    expect("bias", {2, 2 * rows}, bias);
  }
  const auto integers = [&](const std::string& name) {
    return std::get<std::vector<int64_t>>(tensor(name).values);
  };
  EXPECT_THAT(integers("rnn.pad"), ElementsAre(1));
  EXPECT_THAT(integers("rnn.time"), ElementsAre(1));
  EXPECT_THAT(integers("rnn.joined"), ElementsAre(0, 0, 2 * kHidden)) << "0: as it was";
  EXPECT_THAT(Operators(graph),
              ElementsAre("Gather", "Equal", "Not", "Cast", "ReduceSum", "Transpose", "LSTM",
                          "Transpose", "Reshape", "LSTM", "Transpose", "Reshape"));
}

TEST(TranslateModel, ADecoderIsAGraphOfOneStepBehindItsEncoder) {
  const Counted model(
      Graph::FromFile(DTRAIN_SOURCE_DIR "/configs/models/seq2seq_attention.yaml", {}));
  const auto graphs = model.Translated();
  ASSERT_EQ(graphs.size(), 2U);
  EXPECT_THAT(Names(graphs[0].inputs), ElementsAre("source"));
  EXPECT_THAT(Names(graphs[0].outputs), ElementsAre("encoder_outputs", "state"));
  EXPECT_THAT(Names(graphs[1].inputs), ElementsAre("encoder_outputs", "state", "source", "token"));
  EXPECT_THAT(Names(graphs[1].outputs), ElementsAre("logits", "next_state"));
  EXPECT_EQ(graphs[0].outputs[0].shape, (std::vector<OnnxDim>{"batch", "length", int64_t{1024}}));
  EXPECT_EQ(graphs[1].inputs[0].shape, graphs[0].outputs[0].shape);
  EXPECT_EQ(graphs[1].inputs[3].shape, (std::vector<OnnxDim>{"batch"}));
  EXPECT_EQ(graphs[1].outputs[0].shape, (std::vector<OnnxDim>{"batch", int64_t{5893}}));
  EXPECT_TRUE(graphs[1].inputs[3].integers);
}

}  // namespace
}  // namespace dtrain
