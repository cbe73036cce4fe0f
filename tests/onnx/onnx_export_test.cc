// Exports saved weights as ONNX files and reads them back with the ONNX library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/data/images/image_set.h"
#include "framework/data/text/sentence_pairs.h"
#include "framework/nn/graph.h"
#include "framework/onnx/export/onnx_export.h"
#include "framework/onnx/file/onnx_file.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kModel =
    "name: small\nlayers:\n"
    "  - {name: fc, type: inner_product, outputs: 3}\n"
    "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n";

// Holds a model as a checkpoint does; its tensors are in another order than the model's.
StoredWeights SmallModel() {
  StoredWeights stored;
  stored.info.model = "small";
  stored.info.model_yaml = kModel;
  stored.info.position = {2, 30, 960, 30};
  stored.info.images = ToText(ImageSetSpec{.image_shape = {2, 1, 2},
                                           .classes = 3,
                                           .mean = {0.25F, 0.5F},
                                           .deviation = 0.125F,
                                           .class_names = {"cat", "dog", "émeu"}});
  stored.layout.parameters.entries = {{"fc.bias", {3}, {0, 3}}, {"fc.weight", {3, 4}, {3, 15}}};
  for (int i = 0; i < 15; ++i) stored.weights.push_back(static_cast<float>(i));
  return stored;
}

TEST(OnnxExport, AnswersOfARegressionAreInTheUnitOfTheLabels) {
  StoredWeights stored;
  stored.info.model = "line";
  stored.info.model_yaml =
      "name: line\nlayers:\n"
      "  - {name: fc, type: inner_product, outputs: 2}\n"
      "  - {name: loss, type: mean_squared_error, input: [fc, label]}\n";
  ImageSetSpec spec{.image_shape = {3}, .numbers = true, .target_shape = {2}};
  spec.target_mean = {100, -5};
  spec.target_deviation = {20, 0.5};
  stored.info.images = ToText(spec);
  stored.layout.parameters.entries = {{"fc.weight", {2, 3}, {0, 6}}, {"fc.bias", {2}, {6, 8}}};
  stored.weights.resize(8);
  const OnnxGraph graph = OnnxOf(stored, "c.h5").at(0);
  ASSERT_EQ(graph.outputs.size(), 1u);
  EXPECT_EQ(graph.outputs[0].name, "outputs");
  ASSERT_GE(graph.nodes.size(), 3u);
  const OnnxNode &scale = graph.nodes[graph.nodes.size() - 2], &shift = graph.nodes.back();
  EXPECT_EQ(scale.op, "Mul");
  EXPECT_THAT(scale.inputs, ElementsAre("outputs.normalised", "target_deviation"));
  EXPECT_EQ(shift.op, "Add");
  EXPECT_THAT(shift.inputs, ElementsAre(scale.outputs[0], "target_mean"));
  EXPECT_THAT(shift.outputs, ElementsAre("outputs"));
  const auto values = [&](const std::string& name) {
    for (const OnnxTensor& tensor : graph.tensors) {
      if (tensor.name == name) return std::get<std::vector<float>>(tensor.values);
    }
    return std::vector<float>();
  };
  EXPECT_THAT(values("target_deviation"), ElementsAre(20, 0.5f));
  EXPECT_THAT(values("target_mean"), ElementsAre(100, -5));
  if (HasOnnx()) {
    EXPECT_FALSE(OnnxBytes(graph).empty()) << "the library's checker takes it";
  }
  // Without a scale nothing is appended.
  spec.target_mean = 0;
  spec.target_deviation = 1;
  stored.info.images = ToText(spec);
  EXPECT_NE(OnnxOf(stored, "c.h5").at(0).nodes.back().op, "Add");
}

// Returns a model that learns two numbers by a loss of this type at each of two layers.
StoredWeights TwoLosses(const std::string& loss) {
  StoredWeights stored;
  stored.info.model = "lines";
  stored.info.model_yaml =
      "name: lines\nlayers:\n"
      "  - {name: fc, type: inner_product, outputs: 2, input: data}\n"
      "  - {name: aux, type: inner_product, outputs: 2, input: data}\n"
      "  - {name: loss1, type: " +
      loss + ", input: [fc, label]}\n  - {name: loss2, type: " + loss + ", input: [aux, label]}\n";
  ImageSetSpec spec{.image_shape = {3}, .numbers = true, .target_shape = {2}};
  if (loss == "mean_squared_error") {
    spec.target_mean = {100, -5};
    spec.target_deviation = {20, 0.5};
  }
  stored.info.images = ToText(spec);
  stored.layout.parameters.entries = {{"fc.weight", {2, 3}, {0, 6}},
                                      {"fc.bias", {2}, {6, 8}},
                                      {"aux.weight", {2, 3}, {8, 14}},
                                      {"aux.bias", {2}, {14, 16}}};
  stored.weights.resize(16);
  return stored;
}

TEST(OnnxExport, EachAnswerOfARegressionIsTurnedBack) {
  const OnnxGraph graph = OnnxOf(TwoLosses("mean_squared_error"), "c.h5").at(0);
  ASSERT_EQ(graph.outputs.size(), 2u);
  std::map<std::string, std::string> shifted;  // the output of an Add, and what is shifted
  for (const OnnxNode& node : graph.nodes) {
    if (node.op == "Add" && node.inputs.at(1) == "target_mean") {
      shifted[node.outputs.at(0)] = node.inputs.at(0);
    }
  }
  EXPECT_EQ(shifted,
            (std::map<std::string, std::string>{{"fc", "fc.scaled"}, {"aux", "aux.scaled"}}));
  EXPECT_EQ(graph.metadata.at("output"), "in the unit of the labels");
  if (HasOnnx()) {
    EXPECT_FALSE(OnnxBytes(graph).empty()) << "the library's checker takes it";
  }
}

// The answers of such a loss are logits.
TEST(OnnxExport, AnswersOfAnotherLossHaveNoUnit) {
  const OnnxGraph graph = OnnxOf(TwoLosses("binary_cross_entropy"), "c.h5").at(0);
  EXPECT_EQ(graph.metadata.count("output"), 0u);
  EXPECT_EQ(graph.metadata.count("target_mean"), 0u);
}

TEST(OnnxExport, MetadataSaysHowImagesBecomeInputsAndAnswersNames) {
  const OnnxGraph graph = OnnxOf(SmallModel(), "c.h5").at(0);
  const auto& metadata = graph.metadata;
  EXPECT_EQ(json::parse(metadata.at("mean")), json({0.25, 0.5}));
  EXPECT_EQ(json::parse(metadata.at("deviation")), json({0.125, 0.125}));
  EXPECT_EQ(json::parse(metadata.at("sample")), json({2, 1, 2}));
  EXPECT_EQ(metadata.at("orientation"), "exif");
  EXPECT_EQ(json::parse(metadata.at("class_names")), json({"cat", "dog", "émeu"}));
  EXPECT_EQ(metadata.at("classes"), "3");
  EXPECT_EQ(metadata.at("step"), "30");
  EXPECT_THAT(metadata.at("input"), HasSubstr("(pixel / 255 - mean) / deviation"));
  EXPECT_EQ(metadata.at("epoch"), "2");
  EXPECT_FALSE(metadata.contains("columns"));
  EXPECT_THAT(metadata.at("class_names"), HasSubstr("émeu")) << "as text";
}

TEST(OnnxExport, MetadataOfATableHasItsColumns) {
  StoredWeights stored = SmallModel();
  stored.info.images = ToText(ImageSetSpec{.image_shape = {4},
                                           .classes = 3,
                                           .mean = 0.5F,
                                           .deviation = 1.0F,
                                           .class_names = {"a", "b", "c"},
                                           .numbers = true,
                                           .columns = {"w", "x", "y", "z"},
                                           .label_column = "kind"});
  const auto metadata = OnnxOf(stored, "c.h5").at(0).metadata;
  EXPECT_EQ(json::parse(metadata.at("columns")), json({"w", "x", "y", "z"}));
  EXPECT_EQ(json::parse(metadata.at("mean")), json({0.5, 0.5, 0.5, 0.5}));
  EXPECT_THAT(metadata.at("input"), HasSubstr("(x - mean) / deviation"));
  EXPECT_FALSE(metadata.contains("orientation"));
}

TEST(OnnxExport, MetadataOfATranslatorHasItsVocabularies) {
  StoredWeights stored;
  stored.info.model_yaml =
      "name: words\nlayers:\n  - {name: words, type: embedding, input: source, outputs: 1}\n";
  TextInfo text;
  text.source = Vocabulary::Of({{"eins", "zwei", "eins"}}, 1);
  text.target = Vocabulary::Of({{"one"}}, 1);
  stored.info.text = text.ToText();
  stored.layout.parameters.entries = {{"words.weight", {6, 1}, {0, 6}}};
  stored.weights.resize(6);
  const auto metadata = OnnxOf(stored, "c.h5").at(0).metadata;
  EXPECT_EQ(json::parse(metadata.at("source_vocabulary")),
            json({"<unk>", "<pad>", "<sos>", "<eos>", "eins", "zwei"}));
  EXPECT_EQ(json::parse(metadata.at("target_vocabulary")),
            json({"<unk>", "<pad>", "<sos>", "<eos>", "one"}));
  EXPECT_EQ(metadata.at("source_language"), "de");
  EXPECT_EQ(metadata.at("target_language"), "en");
  EXPECT_EQ(metadata.at("pad"), std::to_string(token::kPad));
}

TEST(OnnxExport, WeightsAreTakenByTheirNames) {
  const OnnxGraph graph = OnnxOf(SmallModel(), "c.h5").at(0);
  for (const OnnxTensor& tensor : graph.tensors) {
    const auto& values = std::get<std::vector<float>>(tensor.values);
    EXPECT_EQ(values[0], tensor.name == "fc.bias" ? 0 : 3) << tensor.name;
  }
}

TEST(OnnxExport, WeightsOfAnotherModelAreRefused) {
  StoredWeights stored = SmallModel();
  stored.layout.parameters.entries[1].name = "other.weight";
  EXPECT_THROW(OnnxOf(stored, "c.h5"), CheckpointError);
}

TEST(OnnxExport, WeightsThatDoNotSayTheirModelAreRefused) {
  StoredWeights stored = SmallModel();
  stored.info.model_yaml.clear();
  EXPECT_THROW(OnnxOf(stored, "c.h5"), CheckpointError);
}

TEST(OnnxExport, AFileWithoutTheLibrarySaysWhatToInstall) {
  if (HasOnnx()) {
    EXPECT_THAT(OnnxBytes(OnnxOf(SmallModel(), "c.h5").at(0)), HasSubstr("fc.weight"));
    return;
  }
  EXPECT_THROW(OnnxBytes(OnnxGraph()), UsageError);
}

TEST(OnnxExport, TwoGraphsAreTwoFiles) {
  if (!HasOnnx()) return;
  const TempFolder folder;
  const OnnxGraph graph = OnnxOf(SmallModel(), "c.h5").at(0);
  EXPECT_THAT(WriteOnnx(folder / "m.onnx", {graph, graph}),
              ElementsAre(folder / "m.encoder.onnx", folder / "m.decoder.onnx"));
  EXPECT_EQ(ReadFile(folder / "m.decoder.onnx"), OnnxBytes(graph));
  EXPECT_THAT(WriteOnnx(folder / "one.onnx", {graph}), ElementsAre(folder / "one.onnx"));
}

}  // namespace
}  // namespace dtrain
