// Tests blocks of a model file: the layers that they expand to, and their error messages.
#include "framework/nn/blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "framework/nn/graph.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<FieldSpec> kInputs = {{"data", DType::kF32, {1, 28, 28}},
                                        {"label", DType::kI32, {}}};

// These are lines 3 to 8 of m.yaml; a test's own text begins at line 9.
constexpr char kBlocks[] = R"(name: test
blocks:
  conv_relu:
    arguments: [width]
    layers:
      - {name: conv, type: convolution, outputs: $width, kernel: 3, pad: 1}
      - {name: relu, type: relu}
)";

Graph ReadBlocks(const std::string& text) {
  return Graph::FromText(kBlocks + text, "m.yaml", kInputs);
}

// Returns "name(inputs)" of each layer.
std::vector<std::string> LayersOf(const Graph& graph) {
  std::vector<std::string> layers;
  for (const GraphLayer& layer : graph.layers()) {
    std::vector<std::string> inputs;
    for (const int value : layer.inputs) inputs.push_back(graph.values()[value].name);
    std::string text = layer.name + "(";
    for (size_t i = 0; i < inputs.size(); ++i) text += (i > 0 ? ", " : "") + inputs[i];
    layers.push_back(text + ")");
  }
  return layers;
}

std::string BlockError(const std::string& text) {
  return WhatOf<ConfigError>([&] { ReadBlocks(text); });
}

TEST(Blocks, AUseStandsForItsLayers) {
  const Graph graph = ReadBlocks("layers:\n  - {name: a, block: conv_relu, width: 6}\n");
  EXPECT_THAT(LayersOf(graph), ElementsAre("a.conv(data)", "a.relu(a.conv)"));
  EXPECT_EQ(graph.weights().entries[0].name, "a.conv.weight");
  EXPECT_EQ(graph.weights().entries[0].shape[0], 6);
}

TEST(Blocks, RepeatNumbersTheCopies) {
  const Graph graph = ReadBlocks("layers:\n  - {name: a, block: conv_relu, width: 6, repeat: 2}\n");
  EXPECT_THAT(LayersOf(graph), ElementsAre("a.0.conv(data)", "a.0.relu(a.0.conv)",
                                           "a.1.conv(a.0.relu)", "a.1.relu(a.1.conv)"));
}

TEST(Blocks, TheNameOfAUseIsItsLastLayer) {
  const Graph graph = ReadBlocks(R"(layers:
  - {name: a, block: conv_relu, width: 6, repeat: 2}
  - {name: b, block: conv_relu, width: 6, input: a.0}
  - {name: sum, type: eltwise, input: [a, b]}
)");
  EXPECT_EQ(LayersOf(graph)[4], "b.conv(a.0.relu)");
  EXPECT_EQ(LayersOf(graph)[6], "sum(a.1.relu, b.relu)");
}

constexpr char kShortcut[] = R"(  shortcut:
    arguments: [channels]
    layers:
      - {name: body, block: conv_relu, width: $channels}
      - {name: sum, type: eltwise, input: [body, input]}
)";

TEST(Blocks, InputIsWhatTheBlockTakesAndBlocksNest) {
  const Graph graph = ReadBlocks(std::string(kShortcut) + R"(layers:
  - {name: first, type: convolution, outputs: 4, kernel: 1}
  - {name: a, block: shortcut, channels: 4, repeat: 2}
  - {name: b, block: shortcut, channels: 4, input: first}
)");
  EXPECT_THAT(
      LayersOf(graph),
      ElementsAre("first(data)", "a.0.body.conv(first)", "a.0.body.relu(a.0.body.conv)",
                  "a.0.sum(a.0.body.relu, first)", "a.1.body.conv(a.0.sum)",
                  "a.1.body.relu(a.1.body.conv)", "a.1.sum(a.1.body.relu, a.0.sum)",
                  "b.body.conv(first)", "b.body.relu(b.body.conv)", "b.sum(b.body.relu, first)"));
}

TEST(Blocks, TheFirstBlockTakesTheModelsInput) {
  const Graph graph =
      ReadBlocks(std::string(kShortcut) + "layers:\n  - {name: a, block: shortcut, channels: 1}\n");
  EXPECT_EQ(LayersOf(graph)[2], "a.sum(a.body.relu, data)");
}

TEST(Blocks, AnArgumentThatIsMissingIsNamedOnce) {
  EXPECT_THAT(BlockError("layers:\n  - {name: a, block: conv_relu}\n"),
              AllOf(HasSubstr("m.yaml:9:5: block 'conv_relu' needs the argument 'width'"),
                    HasSubstr("its arguments: width"), HasSubstr("1 error")));
}

TEST(Blocks, AKeyThatIsNoArgumentIsNamed) {
  EXPECT_THAT(BlockError("layers:\n  - {name: a, block: conv_relu, width: 6, widht: 7}\n"),
              AllOf(HasSubstr("m.yaml:9:43: block 'conv_relu' has no argument 'widht'"),
                    HasSubstr("did you mean 'width'")));
}

TEST(Blocks, AWrongValueIsReportedWhereItWasGiven) {
  EXPECT_THAT(BlockError("layers:\n  - {name: a, block: conv_relu, width: many}\n"),
              AllOf(HasSubstr("m.yaml:9:40:"), HasSubstr("many")));
}

TEST(Blocks, AnUnknownBlockIsNamed) {
  EXPECT_THAT(BlockError("layers:\n  - {name: a, block: conv_rellu, width: 6}\n"),
              AllOf(HasSubstr("m.yaml:9:22: no block of this model is called 'conv_rellu'"),
                    HasSubstr("did you mean 'conv_relu'")));
}

TEST(Blocks, ABlockMayNotUseItself) {
  EXPECT_THAT(BlockError("  loop:\n    layers:\n      - {name: x, block: loop}\n"
                         "layers:\n  - {name: a, block: loop}\n"),
              AllOf(HasSubstr("m.yaml:10:26: no block above this one is called 'loop'"),
                    HasSubstr("a block may use the blocks written above it")));
}

TEST(Blocks, AnUnknownArgumentInsideABlockIsNamed) {
  EXPECT_THAT(BlockError("  other:\n    arguments: [size]\n    layers:\n"
                         "      - {name: x, type: inner_product, outputs: $sise}\n"
                         "layers:\n  - {name: a, block: other, size: 3}\n"),
              AllOf(HasSubstr("m.yaml:11:49: block 'other' has no argument 'sise'"),
                    HasSubstr("did you mean 'size'")));
}

TEST(Blocks, AnArgumentOutsideABlockIsNamed) {
  EXPECT_THAT(BlockError("layers:\n  - {name: a, type: inner_product, outputs: $width}\n"),
              HasSubstr("m.yaml:9:45: '$width' stands outside a block"));
}

TEST(Blocks, AUseNeedsAName) {
  EXPECT_THAT(BlockError("layers:\n  - {block: conv_relu, width: 6}\n"),
              HasSubstr("m.yaml:9:5: the use of a block needs a name"));
}

TEST(Blocks, RepeatIsAWholeNumber) {
  for (const std::string repeat : {"0", "two", "1001", "[2]"}) {
    EXPECT_THAT(
        BlockError("layers:\n  - {name: a, block: conv_relu, width: 6, repeat: " + repeat + "}\n"),
        HasSubstr("m.yaml:9:51: repeat must be a whole number from 1 to 1000"));
  }
}

TEST(Blocks, ABlockTakesOneInput) {
  EXPECT_THAT(
      BlockError("layers:\n  - {name: a, block: conv_relu, width: 6, input: [data, data]}\n"),
      HasSubstr("m.yaml:9:50: a block takes one input"));
}

TEST(Blocks, ALayerAndAUseHaveDifferentNames) {
  EXPECT_THAT(BlockError("layers:\n  - {name: a, block: conv_relu, width: 6}\n"
                         "  - {name: a, type: relu}\n"),
              HasSubstr("m.yaml:10:6: a layer and a use of a block are both called 'a'"));
}

TEST(Blocks, BadDefinitionsAreNamed) {
  EXPECT_THAT(BlockError("  empty: {arguments: [a]}\nlayers:\n  - {name: r, type: relu}\n"),
              HasSubstr("m.yaml:8:3: block 'empty' needs a list of layers"));
  EXPECT_THAT(BlockError("  odd: {argumnts: [a], layers: [{name: r, type: relu}]}\n"
                         "layers:\n  - {name: r, type: relu}\n"),
              AllOf(HasSubstr("m.yaml:8:9: unknown key 'argumnts' in block 'odd'"),
                    HasSubstr("did you mean 'arguments'")));
  EXPECT_THAT(BlockError("  odd: {arguments: [a, repeat, a], layers: [{name: r, type: relu}]}\n"
                         "layers:\n  - {name: r, type: relu}\n"),
              AllOf(HasSubstr("'repeat' cannot name an argument"),
                    HasSubstr("'a' cannot name an argument"), HasSubstr("2 errors")));
  EXPECT_THAT(BlockError("  odd: {arguments: a, layers: [{name: r, type: relu}]}\n"
                         "layers:\n  - {name: r, type: relu}\n"),
              HasSubstr("m.yaml:8:20: arguments must be a list of names"));
}

TEST(Blocks, BlocksAreAMapping) {
  try {
    Graph::FromText("name: m\nblocks: [a]\nlayers: [{name: r, type: relu}]\n", "m.yaml", kInputs);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("m.yaml:2:9: blocks must be a mapping from names to blocks"));
  }
}

}  // namespace
}  // namespace dtrain
