// Tests a model's errors: each is reported once, none is the consequence of another, and none is
// lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "framework/nn/graph.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<FieldSpec> kFields = {{"data", DType::kF32, {1, 28, 28}},
                                        {"label", DType::kI32, {}, 10}};

std::string ErrorsOf(const std::string& text, const std::vector<FieldSpec>& fields = kFields) {
  return WhatOf<ConfigError>([&] { Graph::FromText(text, "m.yaml", fields); });
}

std::string OfLayers(const std::string& layers) {
  return ErrorsOf("name: test\nlayers:\n" + layers);
}

// The remaining layers of a model; the test writes the layer `a` in line 3.
constexpr char kRest[] =
    "  - {name: b, type: convolution, input: a, outputs: 8, kernel: 5}\n"
    "  - {name: c, type: eltwise, input: [b, a]}\n"
    "  - {name: d, type: inner_product, input: c, outputs: 10}\n"
    "  - {name: loss, type: softmax_cross_entropy, input: [d, label]}\n";

TEST(ModelErrors, NothingIsReportedOfWhatTakesABrokenLayer) {
  for (const char* layer : {
           "{nmae: a, type: convolution, outputs: 8, kernel: 3, pad: 1}",
           "{name: {a: 1}, type: convolution, outputs: 8, kernel: 3, pad: 1}",
           "{name: a, tpye: convolution, outputs: 8, kernel: 3, pad: 1}",
           "{name: a, type: convolutoin, outputs: 8, kernel: 3, pad: 1}",
           "{name: a, type: convolution, outptus: 8, kernel: 3, pad: 1}",
           "{name: a, type: convolution, outputs: 8, kernal: 33, pad: 1}",
           "{name: a, type: convolution, outputs: 8, kernel: 33}",
           "{name: a, type: convolution, outputs: 8, kernel: 3, padd: 1}",
           "{name: a, type: convolution, outputs: 8, kernel: 3, pad: -1}",
           "{name: a, type: convolution, inptu: label, outputs: 8, kernel: 3, pad: 1}",
           "{name: a, type: convolution, input: dat, outputs: 8, kernel: 3, pad: 1}",
           "{name: a, type: convolution, input: {a: 1}, outputs: 8, kernel: 3, pad: 1}",
           "{name: a, type: convolution, input: [data, label], outputs: 8, kernel: 3, pad: 1}",
       }) {
    EXPECT_THAT(OfLayers("  - " + std::string(layer) + "\n" + kRest),
                AllOf(HasSubstr("m.yaml:3:"), HasSubstr("1 error;")))
        << layer;
  }
}

TEST(ModelErrors, OfTwoBothAreReported) {
  for (const char* rest : {
           "  - {name: b, type: convolution, input: a, outputs: 8, kernal: 5}\n",
           "  - {name: b, type: convolution, input: data, outputs: 8, kernel: 50}\n",
           "  - {name: b, type: rellu, input: a}\n",
           "  - {name: b, type: relu, input: zzz}\n",
           "  - {name: b, type: eltwise, input: a}\n",
           "  - {name: b, type: pooling, input: a, kernel: 2, pad: 2}\n",
       }) {
    const std::string broken = "  - {name: a, type: convolution, outputs: 8, kernal: 3, pad: 1}\n";
    const std::string errors = OfLayers(broken + rest);
    EXPECT_THAT(errors, AllOf(HasSubstr("m.yaml:3:"), HasSubstr("m.yaml:4:"))) << rest;
    EXPECT_THAT(errors, HasSubstr("2 errors;")) << rest;
  }
}

// A layer without a name explains one unknown name only.
TEST(ModelErrors, ALayerWithoutANameIsOneName) {
  EXPECT_THAT(OfLayers("  - {nmae: a, type: relu}\n"
                       "  - {name: b, type: relu, input: a}\n"
                       "  - {name: c, type: eltwise, input: [a, zzz]}\n"),
              AllOf(HasSubstr("'nmae'"), HasSubstr("m.yaml:5:"), HasSubstr("called 'zzz'"),
                    HasSubstr("2 errors;")));
}

// The unknown name must not resemble a known one: otherwise it is an error of its own.
TEST(ModelErrors, ALayerWithoutANameExcusesNoMisspeltName) {
  for (const char* name : {"dtaa", "dat", "datta", "dada"}) {
    EXPECT_THAT(
        OfLayers("  - {type: relu}\n  - {name: b, type: relu, input: " + std::string(name) + "}\n"),
        AllOf(HasSubstr("m.yaml:3:"), HasSubstr("m.yaml:4:"), HasSubstr("mean 'data'"),
              HasSubstr("2 errors;")))
        << name;
  }
}

// Names of different layers may be as similar as misspelt ones.
TEST(ModelErrors, ALayerWithoutANameMayHaveHadTheNextNumber) {
  EXPECT_THAT(OfLayers("  - {name: conv1, type: relu}\n"
                       "  - {nmae: conv2, type: relu}\n"
                       "  - {name: sum, type: eltwise, input: [conv1, conv2]}\n"),
              AllOf(HasSubstr("m.yaml:4:"), HasSubstr("1 error;")));
  EXPECT_THAT(OfLayers("  - {name: a, type: relu}\n"
                       "  - {nmae: b, type: relu}\n"
                       "  - {name: sum, type: eltwise, input: [a, b]}\n"),
              AllOf(HasSubstr("m.yaml:4:"), HasSubstr("1 error;")));
}

TEST(ModelErrors, ANameThatNothingHasIsReportedOnceWithItsLines) {
  EXPECT_THAT(OfLayers("  - {name: a, type: relu}\n"
                       "  - {name: b, type: relu, input: first}\n"
                       "  - {name: c, type: eltwise, input: [a, first]}\n"
                       "  - {name: d, type: relu, input: second}\n"),
              AllOf(HasSubstr("m.yaml:4:34: no earlier layer or input is called 'first' (and line "
                              "5)\n"),
                    HasSubstr("m.yaml:6:34: no earlier layer or input is called 'second'\n"),
                    HasSubstr("2 errors;")));
}

TEST(ModelErrors, ANameThatNothingHasAndTooFewInputsAreOneError) {
  EXPECT_THAT(OfLayers("  - {name: a, type: accuracy, input: three}\n"),
              AllOf(HasSubstr("no earlier layer or input is called 'three', and accuracy takes 2 "
                              "inputs, not 1"),
                    HasSubstr("1 error;")));
}

TEST(ModelErrors, ASecondLayerOfANameHidesNoUnknownKey) {
  EXPECT_THAT(OfLayers("  - {name: a, type: relu}\n  - {name: a, type: relu, slope: 1}\n"),
              AllOf(HasSubstr("a second layer or input is called 'a'"), HasSubstr("'slope'"),
                    HasSubstr("2 errors;")));
}

TEST(ModelErrors, AMisspeltListOfLayersIsReadAllTheSame) {
  EXPECT_THAT(ErrorsOf("name: m\nlayes:\n  - {name: a, type: rellu}\n"),
              AllOf(HasSubstr("m.yaml:2:1: unknown key 'layes'"), HasSubstr("m.yaml:3:"),
                    HasSubstr("2 errors;")));
  EXPECT_THAT(ErrorsOf("name: m\nlayers: {a: 1}\n"),
              AllOf(HasSubstr("must be a list"), HasSubstr("1 error;")));
}

// Returns a model in which the line that begins with `line` is replaced by `text`.  Block `body` is
// in lines 3 to 8, used twice; its layers are in lines 6 to 8.
std::string WithBlocks(const std::string& line, const std::string& text) {
  std::vector<std::string> lines = {
      "name: m",
      "blocks:",
      "  body:",
      "    arguments: [width]",
      "    layers:",
      "      - {name: conv, type: convolution, outputs: $width, kernel: 3, pad: 1}",
      "      - {name: relu, type: relu, input: conv}",
      "      - {name: sum, type: eltwise, input: [conv, relu]}",
      "layers:",
      "  - {name: one, block: body, width: 8, repeat: 2}",
      "  - {name: two, block: body, width: 8, input: one.0}",
      "  - {name: both, type: eltwise, input: [one, two]}",
      "  - {name: fc, type: inner_product, outputs: 10}",
      "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}",
  };
  std::string model;
  for (const std::string& known : lines) {
    const bool replaced = known.starts_with(line) && !line.empty();
    model += (replaced ? text : known) + "\n";
  }
  return model;
}

struct BlockCase {
  std::string line, text;  // replaces the line that begins with `line`
  std::string at, what;
};

class OneBlockCase : public ::testing::TestWithParam<BlockCase> {};

TEST_P(OneBlockCase, IsOneError) {
  const BlockCase& error = GetParam();
  EXPECT_EQ(ErrorsOf(WithBlocks("", "")), "no error");
  EXPECT_THAT(
      ErrorsOf(WithBlocks(error.line, error.text)),
      AllOf(HasSubstr("m.yaml:" + error.at + ":"), HasSubstr(error.what), HasSubstr("1 error;")));
}

INSTANTIATE_TEST_SUITE_P(
    All, OneBlockCase,
    ::testing::Values(
        BlockCase{"blocks:", "blcks:", "2", "unknown key 'blcks'"},
        BlockCase{"  body:", "  bod:", "10",
                  "no block of this model is called 'body' (and line 11)"},
        BlockCase{"    arguments", "    argumentss: [width]", "4", "'argumentss' in block 'body'"},
        BlockCase{"    arguments", "    arguments: three", "4", "arguments must be a list"},
        BlockCase{"    arguments", "    arguments: [widht]", "6", "has no argument 'width'"},
        BlockCase{"    layers:", "    lyers:", "5", "unknown key 'lyers' in block 'body'"},
        BlockCase{"      - {name: conv",
                  "      - {nam: conv, type: convolution, outputs: $width, kernel: 3, pad: 1}", "6",
                  "unknown key 'nam'"},
        BlockCase{"      - {name: conv",
                  "      - {name: conv, type: convolution, outputs: $width, kernel: 3, pda: 1}",
                  "6", "unknown key 'pda'"},
        BlockCase{"      - {name: conv",
                  "      - {name: conv, type: convolution, outputs: $width, kernel: three, pad: 1}",
                  "6", "kernel must be an integer"},
        BlockCase{"      - {name: conv",
                  "      - {name: conv, type: convolution, outputs: $widt, kernel: 3, pad: 1}", "6",
                  "has no argument 'widt'"},
        BlockCase{"      - {name: conv",
                  "      - {name: cnv, type: convolution, outputs: $width, kernel: 3, pad: 1}", "7",
                  "no earlier layer of block 'body' is called 'conv' (and line 8)"},
        BlockCase{"      - {name: sum", "      - {name: sum, type: eltwise, inputt: [conv, relu]}",
                  "8", "unknown key 'inputt'"},
        BlockCase{"      - {name: sum", "      - {name: sum, type: eltwise, input: -1}", "8",
                  "input must be a string"},
        BlockCase{"  - {name: one", "  - {nmae: one, block: body, width: 8, repeat: 2}", "10",
                  "'nmae'"},
        BlockCase{"  - {name: one", "  - {name: -1, block: body, width: 8, repeat: 2}", "10",
                  "the name of a use must be a string"},
        BlockCase{"  - {name: one", "  - {name: one, blokc: body, width: 8, repeat: 2}", "10",
                  "unknown key 'blokc'"},
        BlockCase{"  - {name: one", "  - {name: one, block: bodi, width: 8, repeat: 2}", "10",
                  "no block of this model is called 'bodi'"},
        BlockCase{"  - {name: one", "  - {name: one, block: {a: 1}, width: 8, repeat: 2}", "10",
                  "block must be the name of a block"},
        BlockCase{"  - {name: one", "  - {name: one, block: body, wdith: 8, repeat: 2}", "10",
                  "has no argument 'wdith'"},
        BlockCase{"  - {name: one", "  - {name: one, block: body, width: three, repeat: 2}", "10",
                  "argument 'width', layers[0].outputs, must be an integer"},
        BlockCase{"  - {name: one", "  - {name: one, block: body, repeat: 2}", "10",
                  "needs the argument 'width'"},
        BlockCase{"  - {name: one", "  - {name: one, block: body, width: 8, repat: 2}", "10",
                  "has no argument 'repat'"},
        BlockCase{"  - {name: one", "  - {name: one, block: body, width: 8, repeat: two}", "10",
                  "repeat must be a whole number"},
        BlockCase{"  - {name: two", "  - {name: two, block: body, width: 8, input: [one]}", "11",
                  "a block takes one input"},
        BlockCase{"  - {name: two", "  - {name: two, block: body, width: 8, input: zzz}", "11",
                  "no earlier layer or input is called 'zzz'"},
        BlockCase{"  - {name: both", "  - {name: both, type: eltwise, input: [one, too]}", "12",
                  "no earlier layer or input is called 'too'"}));

// ResNet has such names, shortcut.0 and shortcut.1.  A block may also use another block's layers.
TEST(ModelErrors, NamesInABlockMayHaveDots) {
  std::string model = WithBlocks("", "");
  const std::string block =
      "  dotted:\n"
      "    layers:\n"
      "      - {name: inner, block: body, width: 8}\n"
      "      - {name: way.0, type: relu, input: inner.conv}\n"
      "      - {name: sum, type: eltwise, input: [inner, way.0]}\n";
  model.insert(model.find("layers:\n  - {name: one"), block);
  model.insert(model.find("  - {name: fc"), "  - {name: extra, block: dotted}\n");
  EXPECT_EQ(ErrorsOf(model), "no error");
  model.replace(model.find("[inner, way.0]"), 14, "[inner, way.1]");
  EXPECT_THAT(ErrorsOf(model), AllOf(HasSubstr("block 'dotted' is called 'way.1'"),
                                     HasSubstr("did you mean 'way.0'"), HasSubstr("1 error;")));
}

// A wrong name does not stop the check of the other keys of a model or layer.
TEST(ModelErrors, AWrongNameHidesNoUnknownKey) {
  EXPECT_THAT(ErrorsOf("name: -1\nsampel: [4]\nlayers: [{name: -1, type: relu, slope: 1}]\n"),
              AllOf(HasSubstr("m.yaml:1:7:"), HasSubstr("'sampel'"), HasSubstr("m.yaml:3:17:"),
                    HasSubstr("'slope'"), HasSubstr("4 errors;")));
}

TEST(ModelErrors, AnEmptyNameIsNone) {
  EXPECT_THAT(OfLayers("  - {name: a, type: relu}\n  - {name: b, type: relu, input: \"\"}\n"),
              AllOf(HasSubstr("no earlier layer or input is called ''"), HasSubstr("1 error;")));
}

TEST(ModelErrors, OfTwoInABlockAndAtItsUseBothAreReported) {
  std::string model = WithBlocks(
      "      - {name: conv", "      - {name: conv, type: convolution, outputs: $width, kernal: 3}");
  model.replace(model.find("repeat: 2"), 9, "repeat: x");
  model.replace(model.find("[fc, label]"), 11, "[fd, label]");
  EXPECT_THAT(ErrorsOf(model),
              AllOf(HasSubstr("m.yaml:6:58: unknown key 'kernal'"), HasSubstr("repeat must be"),
                    HasSubstr("m.yaml:14:"), HasSubstr("called 'fd'"), HasSubstr("3 errors;")));
}

TEST(ModelErrors, AnArgumentThatStandsForSeveralKeysIsReportedOnce) {
  EXPECT_THAT(ErrorsOf("name: m\nblocks:\n  two:\n    arguments: [n]\n    layers:\n"
                       "      - {name: a, type: convolution, outputs: $n, kernel: $n}\n"
                       "layers:\n  - {name: x, block: two, n: many}\n"),
              AllOf(HasSubstr("m.yaml:8:30: argument 'n', "), HasSubstr("1 error;")));
}

// The labels of a table of measured values are known to be numbers before there is a net.
TEST(ModelErrors, NumbersAreNoClasses) {
  const std::vector<FieldSpec> numbers = {{"data", DType::kF32, {4}}, {"label", DType::kF32, {}}};
  const std::string model =
      "name: m\nlayers:\n"
      "  - {name: fc, type: inner_product, outputs: 3}\n"
      "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n"
      "  - {name: right, type: accuracy, input: [fc, label]}\n";
  EXPECT_THAT(
      ErrorsOf(model, numbers),
      AllOf(HasSubstr("m.yaml:4:5: layer 'loss' (softmax_cross_entropy): input 'label' holds "
                      "numbers; softmax_cross_entropy takes class labels there\n"
                      "    take the loss mean_squared_error, and no accuracy"),
            HasSubstr("m.yaml:5:5: layer 'right' (accuracy): input 'label' holds numbers; accuracy "
                      "takes class labels there\n    take the loss mean_squared_error"),
            HasSubstr("2 errors;")));
}

// The loss is right, but its inputs are in the wrong order.
TEST(ModelErrors, ScoresComeBeforeLabels) {
  EXPECT_THAT(OfLayers("  - {name: fc, type: inner_product, outputs: 10}\n"
                       "  - {name: loss, type: softmax_cross_entropy, input: [label, fc]}\n"),
              AllOf(HasSubstr("input 'label' holds class labels; softmax_cross_entropy takes "
                              "numbers there\n    the scores come first, the labels second\n"),
                    HasSubstr("1 error;")));
}

TEST(ModelErrors, ClassesAreNoNumbers) {
  EXPECT_THAT(OfLayers("  - {name: a, type: relu, input: label}\n"),
              AllOf(HasSubstr("layer 'a' (relu): input 'label' holds class labels; relu takes "
                              "numbers\n    put an embedding layer before it\n"),
                    HasSubstr("1 error;")));
  const std::vector<FieldSpec> words = {{"words", DType::kI32, {6}, 9}, {"label", DType::kI32, {}}};
  EXPECT_THAT(
      ErrorsOf("name: m\nlayers: [{name: fc, type: inner_product, outputs: 3}]\n", words),
      HasSubstr("layer 'fc' (inner_product): input 'words' holds tokens; inner_product takes "
                "numbers\n    put an embedding layer before it\n"));
}

// The message has no hint: no layer makes classes of images, and the layer is an embedding already.
TEST(ModelErrors, ImagesAreNoTokens) {
  EXPECT_THAT(OfLayers("  - {name: a, type: embedding, outputs: 8}\n"),
              AllOf(HasSubstr("layer 'a' (embedding): input 'data' holds numbers; embedding takes "
                              "classes or tokens\n1 error;"),
                    Not(HasSubstr("mean_squared_error"))));
}

}  // namespace
}  // namespace dtrain
