#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "framework/config/reader.h"

namespace dtrain::config {
namespace {

TEST(Effective, HoldsEveryDeclaredKeyInTheOrderOfDeclaration) {
  Document document = Document::FromText("b: {y: 2}\n", "run.yaml");
  Reader r = document.root();
  const double a = r.Number("a", 1);
  Reader b = r.Section("b");
  const int64_t x = b.Int("x", 1);
  const int64_t y = b.Int("y", 1);
  const std::vector<std::string> c = r.Strings("c", {"data", "no"});
  Reader empty = r.Section("empty");
  EXPECT_EQ(a + x + y + c.size(), 6);
  EXPECT_EQ(document.EffectiveYaml(), "a: 1\nb:\n  x: 1\n  y: 2\nc: [data, \"no\"]\nempty: {}\n");
  EXPECT_EQ(document.EffectiveYaml("a"), "b:\n  x: 1\n  y: 2\nc: [data, \"no\"]\nempty: {}\n");
  EXPECT_EQ(document.EffectiveYaml("b.x"), "a: 1\nb:\n  y: 2\nc: [data, \"no\"]\nempty: {}\n");
  EXPECT_EQ(document.EffectiveJson(),
            "{\n  \"a\": 1.0,\n  \"b\": {\n    \"x\": 1,\n    \"y\": 2\n  },\n"
            "  \"c\": [\n    \"data\",\n    \"no\"\n  ],\n  \"empty\": {}\n}");
}

TEST(Effective, TextStaysReadable) {
  Document document = Document::FromText("x: caf\xc3\xa9\n", "run.yaml");
  const std::string x = document.root().String("x", "");
  EXPECT_EQ(document.EffectiveYaml(), "x: \"" + x + "\"\n");
  EXPECT_EQ(document.EffectiveJson(), "{\n  \"x\": \"" + x + "\"\n}");
}

// A key whose value `auto` means 0 accepts both, and is printed as auto.
TEST(Effective, AutoStandsForZero) {
  for (const char* given : {"n: auto\n", "n: 0\n", ""}) {
    Document document = Document::FromText(given, "run.yaml");
    EXPECT_EQ(static_cast<int64_t>(document.root().Int("n", 0).Auto().Min(0)), 0);
    document.Finish();
    EXPECT_EQ(document.EffectiveYaml(), "n: auto\n");
    EXPECT_EQ(document.EffectiveJson(), "{\n  \"n\": \"auto\"\n}");
    EXPECT_EQ(document.Keys()[0].default_value, "auto");
    EXPECT_EQ(document.Keys()[0].range, ">= 0, or auto");
  }
  Document document = Document::FromText("n: 4\n", "run.yaml");
  EXPECT_EQ(static_cast<int64_t>(document.root().Int("n", 0).Auto()), 4);
  EXPECT_EQ(document.EffectiveYaml(), "n: 4\n");
}

TEST(Effective, ListsOfSectionsReadBack) {
  const auto read = [](const std::string& text) {
    Document document = Document::FromText(text, "model.yaml");
    for (Reader& layer : document.root().List("layers")) {
      const std::string name = layer.String("name", "");
      const std::string init = layer.Section("init").String("name", "xavier");
      EXPECT_FALSE(name.empty() || init.empty());
    }
    document.Finish();
    return document.EffectiveYaml();
  };
  const std::string yaml = read("layers: [{name: a}, {name: b, init: {name: constant}}]");
  EXPECT_EQ(yaml,
            "layers:\n"
            "  - name: a\n    init:\n      name: xavier\n"
            "  - name: b\n    init:\n      name: constant\n");
  EXPECT_EQ(read(yaml), yaml);
  EXPECT_EQ(read("layers: []"), "layers: []\n");
}

double ReadNumber(Document& document) { return document.root().Number("x", 7); }

class NumberRoundTrip : public ::testing::TestWithParam<double> {};

TEST_P(NumberRoundTrip, GivesTheSameBits) {
  Document first = Document::Empty();
  const double written = first.root().Number("x", GetParam());
  Document second = Document::FromText(first.EffectiveYaml(), "again.yaml");
  EXPECT_EQ(ReadNumber(second), written);
  second.Finish();
}

INSTANTIATE_TEST_SUITE_P(All, NumberRoundTrip,
                         ::testing::Values(0.1, 1e-5, 1.0 / 3, 1e300, -2.5, 5e-324, 64e6,
                                           9007199254740993.0, std::numeric_limits<double>::max()));

class StringRoundTrip : public ::testing::TestWithParam<std::string> {};

TEST_P(StringRoundTrip, GivesTheSameText) {
  Document first = Document::Empty();
  const std::string written = first.root().String("x", GetParam());
  const std::vector<std::string> list = first.root().Strings("list", {GetParam(), "b"});
  Document second = Document::FromText(first.EffectiveYaml(), "again.yaml");
  const std::string read = second.root().String("x", "default");
  const std::vector<std::string> read_list = second.root().Strings("list", {});
  second.Finish();
  EXPECT_EQ(read, written);
  EXPECT_EQ(read_list, list);
}

INSTANTIATE_TEST_SUITE_P(All, StringRoundTrip,
                         ::testing::Values("sgd", "", "no", "true", "null", "~", "010", "1e3",
                                           "runs/{config}-{time}", "a: b", "a #b", "- x", "*a",
                                           "\"quoted\"", "back\\slash", "two\nlines", "tab\t",
                                           " x ", "a,b", "[x", "@", "%", "caf\xc3\xa9", ".nan",
                                           "<<", "=", "/tmp/a b", "it's", "\x01"));

TEST(Effective, IntegersKeepAllTheirBits) {
  Document first = Document::Empty();
  const int64_t written = first.root().Int("x", std::numeric_limits<int64_t>::min());
  Document second = Document::FromText(first.EffectiveYaml(), "again.yaml");
  const int64_t read = second.root().Int("x", 0);
  EXPECT_EQ(read, written);
}

TEST(Keys, DescribeEveryDeclaration) {
  Document document = Document::Empty();
  Reader r = document.root();
  const std::string model = r.String("model", "").Required().Help("which net");
  Reader solver = r.Section("solver", "how weights follow gradients");
  const double momentum = solver.Number("momentum", 0.9).Min(0).Below(1).Help("velocity kept");
  const std::string device = r.String("device", "auto").OneOf({"auto", "cpu"});
  EXPECT_EQ(model + device, "auto");
  EXPECT_EQ(momentum, 0.9);
  EXPECT_TRUE(document.errors().empty());

  const std::vector<KeyHelp> keys = document.Keys();
  ASSERT_EQ(keys.size(), 4u);
  EXPECT_EQ(keys[0].path, "model");
  EXPECT_EQ(keys[0].default_value, "required");
  EXPECT_EQ(keys[1].path, "solver");
  EXPECT_EQ(keys[1].type, "section");
  EXPECT_EQ(keys[2].path, "solver.momentum");
  EXPECT_EQ(keys[2].type, "number");
  EXPECT_EQ(keys[2].default_value, "0.9");
  EXPECT_EQ(keys[2].range, ">= 0 and < 1");
  EXPECT_EQ(keys[2].help, "velocity kept");
  EXPECT_EQ(keys[3].range, "one of auto, cpu");
}

TEST(Keys, NoDocumentReadsAsDefaults) {
  Document document = Document::Empty();
  const std::string name = document.root().Section("solver").String("name", "").Required();
  EXPECT_EQ(name, "");
  document.Finish();
}

}  // namespace
}  // namespace dtrain::config
