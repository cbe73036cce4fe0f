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

void Check(const OnnxGraph& graph) {
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
                AllOf(HasSubstr("'one' (type unspeakable"), HasSubstr("'two' (type unspeakable"),
                      Not(HasSubstr("inner_product"))));
  }
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
