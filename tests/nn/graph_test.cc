#include "framework/nn/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<FieldSpec> kImages = {{"data", DType::kF32, {1, 28, 28}},
                                        {"label", DType::kI32, {}}};

Graph ModelOfConfigs(const std::string& name) {
  return Graph::FromFile(std::string(DTRAIN_SOURCE_DIR) + "/configs/models/" + name + ".yaml",
                         kImages);
}

std::string ErrorOf(const std::string& layers) {
  return MessageOf<ConfigError>(
      [&] { Graph::FromText("name: test\nlayers:\n" + layers, "m.yaml", kImages); });
}

// The numbers 61,706 and 431,080 are from papers/models.
TEST(Graph, LeNetHasThePublishedNumberOfParameters) {
  EXPECT_EQ(ModelOfConfigs("lenet5").weights().size(), 61'706);
  EXPECT_EQ(ModelOfConfigs("lenet5_caffe").weights().size(), 431'080);
}

TEST(Graph, AModelReadWithoutADataSetTakesItsOwnSample) {
  const std::string path = std::string(DTRAIN_SOURCE_DIR) + "/configs/models/lenet5.yaml";
  EXPECT_EQ(Graph::FromFile(path, {}).Describe(), ModelOfConfigs("lenet5").Describe());
  try {
    Graph::FromText("name: m\nlayers: [{name: r, type: relu}]\n", "m.yaml", {});
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the key sample is missing"));
  }
}

TEST(Graph, AModelReadWithoutADataSetMayListItsInputs) {
  const std::string model =
      "name: m\n"
      "inputs: [{name: words, shape: [4], classes: 9}, {name: label, shape: [], classes: 3}]\n"
      "layers: [{name: e, type: embedding, outputs: 2}]\n";
  const Graph own = Graph::FromText(model, "m.yaml", {});
  ASSERT_EQ(own.inputs().size(), 2u);
  EXPECT_EQ(own.inputs()[0].dtype, DType::kI32);
  EXPECT_EQ(own.weights().size(), 9 * 2);
  // The data set's shape and classes replace those of the model file.
  EXPECT_EQ(Graph::FromText(model, "m.yaml", {{"words", DType::kI32, {6}, 7}}).weights().size(),
            7 * 2);
  try {
    Graph::FromText(model, "m.yaml", {{"words", DType::kI32, {6}}});
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("layer 'e' (embedding)"),
                                    HasSubstr("how many tokens it reads is unknown")));
  }
}

TEST(Graph, AnInputOfNumbersHasNoClasses) {
  const Graph graph = Graph::FromText(
      "name: m\ninputs: [{name: x, shape: [4], classes: 0}]\n"
      "layers: [{name: fc, type: inner_product, outputs: 2}]\n",
      "m.yaml", {});
  EXPECT_EQ(graph.inputs()[0].dtype, DType::kF32);
  EXPECT_EQ(graph.weights().size(), 4 * 2 + 2);
}

// A faulty layer is reported once; its readers give no further errors.
TEST(Graph, ALayerWithAnErrorIsNotSetUp) {
  const auto errors = [](const std::string& layers) -> std::string {
    try {
      Graph::FromText("name: m\nsample: [4]\n" + layers, "m.yaml", {});
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_THAT(errors("layers: [{name: a, type: \xff}, {name: b, type: relu, input: data}]"),
              AllOf(HasSubstr("this is no text"), HasSubstr("1 error;")));
  EXPECT_THAT(errors("layers: [relu, {name: b, type: relu, input: data}]"), HasSubstr("1 error;"));
  EXPECT_THAT(errors("layers: [{name: a, type: relu, input: data}, {name: b}, {"),
              AllOf(HasSubstr("not valid YAML"), HasSubstr("1 error;")));
  EXPECT_THAT(errors("blocks:\n  twice:\n    layers: [{name: sum, type: eltwise, input: input}]\n"
                     "layers: [{name: a, block: twice}, {name: b, block: twice, input: data}]"),
              AllOf(HasSubstr("eltwise takes 2 inputs or more, not 1"), HasSubstr("1 error;")));
}

// A model that lacks its last layer is refused before any data is loaded.
TEST(Graph, FewerScoresThanClassesAreRefused) {
  const std::string model =
      "name: m\nlayers:\n  - {name: f, type: inner_product, input: data, outputs: 10}\n"
      "  - {name: loss, type: softmax_cross_entropy, input: [f, label]%}\n";
  const auto read = [&](const std::string& key, int64_t classes) {
    std::string text = model;
    text.replace(text.find('%'), 1, key);
    return Graph::FromText(text, "m.yaml",
                           {{"data", DType::kF32, Shape{4}}, {"label", DType::kI32, {}, classes}});
  };
  EXPECT_NO_THROW(read("", 10));
  EXPECT_NO_THROW(read("", 2));
  EXPECT_NO_THROW(read("", 0)) << "unknown";
  EXPECT_NO_THROW(read(", ignore: 10", 11)) << "the last label is none of the classes";
  try {
    read("", 100);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("m.yaml:3:49: layer 'f' (inner_product): the data has 100 classes, but "
                          "the layer has 10 outputs: set outputs: 100"));
  }
}

TEST(Graph, ScoresAndClassesAreReportedAtTheLayerThatMakesThem) {
  const auto read = [](const std::string& layers, const std::string& loss, int64_t classes) {
    return Graph::FromText(
        "name: m\nlayers:\n" + layers + "  - {name: loss, type: " + loss + "}\n", "m.yaml",
        {{"data", DType::kF32, Shape{4}}, {"label", DType::kI32, {}, classes}}, "the set");
  };
  const std::string behind =
      "  - {name: f, type: inner_product, input: data, outputs: 3}\n"
      "  - {name: r, type: relu}\n  - {name: d, type: dropout}\n";
  const std::string softmax = "softmax_cross_entropy, input: [d, label]";
  EXPECT_THAT(MessageOf<ConfigError>([&] { read(behind, softmax, 4); }),
              HasSubstr("m.yaml:3:49: layer 'f' (inner_product): the set has 4 classes, but the "
                        "layer has 3 outputs: set outputs: 4"));
  EXPECT_THAT(read(behind, softmax, 3).warnings(), IsEmpty());
  EXPECT_THAT(read(behind, softmax, 0).warnings(), IsEmpty()) << "unknown";
  const std::string one_of_them =
      "m.yaml:3:49: the set has 2 classes, layer 'f' has 3 outputs: 1 of them is never a label";
  EXPECT_THAT(read(behind, softmax, 2).warnings(), ElementsAre(one_of_them));
  EXPECT_THAT(read(behind, "binary_cross_entropy, input: [d, label]", 2).warnings(),
              ElementsAre(one_of_them));
  EXPECT_THAT(
      read(behind, softmax + "}\n  - {name: other, type: softmax_cross_entropy, input: [f, label]",
           2)
          .warnings(),
      ElementsAre(one_of_them))
      << "two losses, one layer";
  const std::string one = "  - {name: d, type: inner_product, input: data, outputs: 1}\n";
  const std::string squared = "mean_squared_error, input: [d, label]";
  EXPECT_THAT(read(one, squared, 3).warnings(),
              ElementsAre("m.yaml:4:5: layer 'loss' (mean_squared_error): the set has 3 classes, "
                          "and the layer learns their numbers; if the labels of a table are "
                          "numbers, set data.task: regression"));
  EXPECT_THAT(read(one, squared, 2).warnings(), IsEmpty()) << "0 and 1";
  EXPECT_THAT(read(one, squared, 0).warnings(), IsEmpty()) << "numbers";
  const std::string joined =
      "  - {name: f, type: inner_product, input: data, outputs: 3}\n"
      "  - {name: c, type: concat, input: [f, data]}\n";
  const std::string of_joined = "softmax_cross_entropy, input: [c, label]";
  EXPECT_THAT(MessageOf<ConfigError>([&] { read(joined, of_joined, 8); }),
              HasSubstr("m.yaml:5:5: layer 'loss' (softmax_cross_entropy): the set has 8 classes, "
                        "but input 'c' has 7 scores"));
  EXPECT_THAT(read(joined, of_joined, 5).warnings(),
              ElementsAre("m.yaml:5:5: the set has 5 classes, input 'c' has 7 outputs: 2 of them "
                          "are never a label"));
}

TEST(Graph, ArenaIsInBackwardOrderWithoutGaps) {
  const Graph graph = ModelOfConfigs("lenet5");
  const std::vector<ArenaEntry>& entries = graph.weights().entries;
  EXPECT_EQ(entries.front().name, "fc3.weight");
  EXPECT_EQ(entries.back().name, "conv1.bias");
  int64_t end = 0;
  for (const ArenaEntry& entry : entries) {
    EXPECT_EQ(entry.range.begin, end);
    int64_t count = 1;
    for (const int64_t extent : entry.shape) count *= extent;
    EXPECT_EQ(entry.range.size(), count);
    end = entry.range.end;
  }
}

// conv1 takes 2 x 150 x 28 x 28 flops forward (without the bias) and as many for the gradient of its
// weights; it computes no gradient of the images. conv2's backward pass takes twice its forward pass.
TEST(Graph, CostsCountWhatIsComputed) {
  const Graph graph = ModelOfConfigs("lenet5");
  const Cost conv1 = graph.layers()[0].cost;
  EXPECT_NEAR(conv1.forward_flops, 2.0 * 150 * 28 * 28, 6.0 * 28 * 28);
  EXPECT_NEAR(conv1.backward_flops, conv1.forward_flops, 6.0 * 28 * 28);
  const Cost conv2 = graph.layers()[3].cost;
  EXPECT_NEAR(conv2.forward_flops, 2.0 * 2400 * 100, 1600);
  EXPECT_NEAR(conv2.backward_flops, 2 * conv2.forward_flops, 3200);
}

TEST(Graph, WeightsDependOnSeedAndNothingElse) {
  const Graph graph = ModelOfConfigs("lenet5");
  std::vector<float> a(static_cast<size_t>(graph.weights().size())), b(a), c(a);
  graph.InitializeWeights(1, a.data());
  graph.InitializeWeights(1, b.data());
  graph.InitializeWeights(2, c.data());
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
}

TEST(Graph, AMisspeltTypeGetsTheNearestName) {
  EXPECT_THAT(ErrorOf("  - {name: a, type: rellu}\n"),
              AllOf(HasSubstr("m.yaml:3:"), HasSubstr("rellu"), HasSubstr("relu")));
}

TEST(Graph, AnUnknownInputIsNamed) {
  EXPECT_THAT(ErrorOf("  - {name: a, type: relu, input: dat}\n"),
              AllOf(HasSubstr("no earlier layer or input is called 'dat'"),
                    HasSubstr("did you mean 'data'")));
}

TEST(Graph, ANameGivenTwiceIsNamed) {
  EXPECT_THAT(ErrorOf("  - {name: a, type: relu}\n  - {name: a, type: relu}\n"),
              HasSubstr("a second layer or input is called 'a'"));
}

TEST(Graph, TheWrongNumberOfInputsIsNamed) {
  EXPECT_THAT(ErrorOf("  - {name: l, type: softmax_cross_entropy, input: [data]}\n"),
              HasSubstr("softmax_cross_entropy takes 2 inputs, not 1"));
}

TEST(Graph, ShapesThatDoNotFitNameTheLayerAndTheShapes) {
  EXPECT_THAT(
      ErrorOf("  - {name: c, type: convolution, outputs: 4, kernel: 31}\n"),
      AllOf(HasSubstr("m.yaml:3:"), HasSubstr("layer 'c' (convolution)"), HasSubstr("28, 28")));
}

TEST(Graph, AllErrorsAreReportedAtOnce) {
  const std::string message = ErrorOf(
      "  - {name: a, type: rellu}\n"
      "  - {name: b, type: convolution, outputs: 0, kernel: 5, input: data}\n"
      "  - {name: c, type: inner_product, outputs: 10, biass: true, input: data}\n");
  EXPECT_THAT(message, AllOf(HasSubstr("rellu"), HasSubstr("outputs"), HasSubstr("biass"),
                             HasSubstr("3 errors")));
}

TEST(Graph, AModelNeedsALayer) {
  EXPECT_THAT(ErrorOf("  []\n"), HasSubstr("a model needs at least one layer"));
}

TEST(Graph, DescribeNamesEveryLayer) {
  const std::string text = ModelOfConfigs("lenet5").Describe();
  EXPECT_THAT(text,
              AllOf(HasSubstr("conv1 convolution(data) -> [6, 28, 28] weight[6, 1, 5, 5] bias[6]"),
                    HasSubstr("loss softmax_cross_entropy(fc3, label) -> []")));
}

// An error is reported once, at its place, together with the other errors.
TEST(Graph, NoErrorFollowsFromAnotherOne) {
  EXPECT_THAT(ErrorOf("  - {name: a, type: convolutoin, outputs: 3}\n"
                      "  - {name: b, type: relu, input: a}\n"
                      "  - {name: c, type: relu}\n"),
              AllOf(HasSubstr("convolutoin"), HasSubstr("1 error;")));
}

TEST(Graph, AShapeThatDoesNotFitHidesNoOtherError) {
  const std::string error = ErrorOf(
      "  - {name: a, type: convolution, outputs: 3, kernel: 50}\n"
      "  - {name: b, type: relu, input: a}\n"
      "  - {name: c, type: convolution, outputs: 3, kernal: 3, kernel: 3, input: data}\n");
  EXPECT_THAT(error, AllOf(HasSubstr("m.yaml:3:5: layer 'a' (convolution): a window of [50, 50]"),
                           HasSubstr("m.yaml:5:46: unknown key 'kernal'"), HasSubstr("2 errors;")));
}

TEST(Graph, WhatNoMachineHasMemoryForIsRefused) {
  EXPECT_THAT(
      ErrorOf("  - {name: f, type: inner_product, outputs: 2147483647}\n"
              "  - {name: g, type: inner_product, outputs: 2147483647}\n"),
      AllOf(
          HasSubstr("m.yaml:3:5: layer 'f' (inner_product): weight [2147483647, 784] is too large"),
          HasSubstr("no machine has memory for that"), HasSubstr("1 error;")));
  EXPECT_THAT(
      ErrorOf(
          "  - {name: c, type: convolution, outputs: 3, kernel: 3, pad: 9223372036854775807}\n"),
      HasSubstr("pad must be"));
  EXPECT_THAT(MessageOf<ConfigError>([] {
                Graph::FromText(
                    "name: m\nblocks:\n  a: {layers: [{name: r, type: relu}]}\n"
                    "  b: {layers: [{name: x, block: a, repeat: 1000}]}\n"
                    "layers:\n  - {name: y, block: b, repeat: 1000}\n",
                    "m.yaml", kImages);
              }),
              HasSubstr("the blocks make more than 100000 layers"));
}

TEST(Graph, ASampleHasAsManyNumbersAsAreAllowed) {
  const auto read = [](int64_t columns) {
    Graph::FromText("name: m\nlayers:\n  - {name: r, type: relu}\n", "m.yaml",
                    {{"data", DType::kF32, {1'000'000, columns}}});
  };
  EXPECT_NO_THROW(read(1'000'000));
  EXPECT_THAT(MessageOf<ConfigError>([&] { read(1'000'001); }),
              HasSubstr("a sample of shape [1000000, 1000001] is too large"));
}

std::string TrainableOf(const std::string& layers, int64_t samples = 64) {
  const Graph graph = Graph::FromText("name: test\nlayers:\n" + layers, "m.yaml", kImages);
  return WhatOf<ConfigError>([&] { graph.CheckTrainable(samples); });
}

constexpr char kLayers[] =
    "  - {name: f, type: inner_product, outputs: 10}\n"
    "  - {name: loss, type: softmax_cross_entropy, input: [f, label]}\n"
    "  - {name: right, type: accuracy, input: [f, label]}\n";

TEST(Graph, ALayerThatTrainingHasNoUseForIsNamed) {
  EXPECT_EQ(TrainableOf(kLayers), "no error");
  EXPECT_EQ(TrainableOf(std::string(kLayers) + "  - {name: a, type: relu, input: f}\n"
                                               "  - {name: b, type: flatten, input: data}\n"),
            "m.yaml:6:5: the output of layer 'a' reaches no loss\n"
            "m.yaml:7:5: the output of layer 'b' reaches no loss");
  EXPECT_EQ(TrainableOf("  - {name: f, type: inner_product, outputs: 10}\n"),
            "m.yaml:3:5: model 'test' has no loss layer");
  EXPECT_EQ(TrainableOf("  - {name: f, type: inner_product, outputs: 10}\n"
                        "  - {name: right, type: accuracy, input: [f, label]}\n"),
            "m.yaml:4:5: model 'test' has no loss layer");
  // A metric that reaches no parameters does no harm.
  EXPECT_EQ(TrainableOf(std::string(kLayers) +
                        "  - {name: b, type: flatten, input: data}\n"
                        "  - {name: by_pixel, type: accuracy, input: [b, label]}\n"),
            "no error");
}

TEST(Graph, ABatchThatNoMachineHasMemoryForIsRefused) {
  EXPECT_THAT(TrainableOf(kLayers, int64_t{1} << 40),
              HasSubstr("1099511627776 samples of model 'test' have 1.3e+13 activations"));
}

}  // namespace
}  // namespace dtrain
