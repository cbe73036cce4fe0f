// One error gives one message, and of two errors both are reported: a message must not depend on a
// default that took the place of a wrong value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/config/reader.h"
#include "framework/config/tree.h"
#include "framework/core/error.h"
#include "tests/support/message_of.h"

namespace dtrain::config {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Reads two sections that are checked against each other: each part needs a worker.
std::string CheckedTogether(const std::string& text) {
  return WhatOf<ConfigError>([&] {
    Document document = Document::FromText(text, "run.yaml");
    Reader root = document.root();
    Reader cluster = root.Section("cluster");
    const int64_t workers = cluster.Int("workers", 1).Min(1);
    Reader strategy = root.Section("strategy");
    const std::string name = strategy.String("name", "plain").OneOf({"plain", "parted"});
    const int64_t parts = name == "parted" ? strategy.Int("parts", 2).Min(1) : 1;
    const int64_t most = strategy.Int("most", 9).Min(1);
    if (parts > workers) {
      strategy.AddError("parts", "too many parts", "", {cluster.At("workers")});
    }
    if (parts > most) strategy.AddError("", "more parts than most", "", {"parts", "most"});
    document.Finish();
  });
}

TEST(OneError, AConflictOfRightValuesIsReported) {
  EXPECT_THAT(CheckedTogether("strategy: {name: parted}\n"),
              AllOf(HasSubstr("too many parts"), HasSubstr("1 error;")));
  EXPECT_THAT(CheckedTogether("strategy: {name: parted, parts: 5, most: 3}\n"),
              AllOf(HasSubstr("too many parts"), HasSubstr("more parts than most"),
                    HasSubstr("2 errors;")));
}

TEST(OneError, NothingIsCheckedByADefaultThatWasNotMeant) {
  for (const char* workers :
       {"clustr: {workers: 4}", "cluster: {workrs: 4}", "cluster: [4]", "cluster: {workers: four}",
        "cluster: {workers: 0}", "cluster: {workers: }", "cluster: {qqqqqqqqq: 4}"}) {
    EXPECT_THAT(CheckedTogether("strategy: {name: parted, parts: 4}\n" + std::string(workers)),
                AllOf(HasSubstr("run.yaml:2:"), HasSubstr("1 error;")))
        << workers;
  }
}

TEST(OneError, AnUnknownKeyThatIsLikeAnotherOneHidesNoConflict) {
  EXPECT_THAT(CheckedTogether("strategy: {name: parted, mosst: 4}\n"),
              AllOf(HasSubstr("too many parts"), HasSubstr("'mosst'"), HasSubstr("2 errors;")));
  EXPECT_THAT(
      CheckedTogether("strategy: {name: parted, parts: 5, most: 3}\nclusterr: {}\n"),
      AllOf(HasSubstr("more parts than most"), HasSubstr("'clusterr'"), HasSubstr("2 errors;")));
}

// The keys of the default strategy are not those of the strategy that the user meant.
TEST(OneError, AMisspeltNameLeavesTheKeysBesideItInPeace) {
  EXPECT_EQ(CheckedTogether("strategy: {nmae: parted, parts: 1}\n"),
            "run.yaml:1:12: unknown key 'nmae' in strategy 'plain'\n"
            "    did you mean 'name'?\n"
            "1 error; nothing was started");
}

TEST(OneError, ARepeatedKeyMayBeTheOneThatIsNotThere) {
  EXPECT_THAT(CheckedTogether("strategy: {name: parted, most: 4, most: 1}\n"
                              "cluster: {}\n"),
              AllOf(HasSubstr("repeated key 'most'"), HasSubstr("1 error;")));
}

TEST(OneError, WhatSomebodyRefusedIsNeverTaken) {
  Document document = Document::FromText("a: x\n", "run.yaml");
  Reader root = document.root();
  const int64_t a = root.Int("a", 1);
  EXPECT_EQ(a, 1);
  EXPECT_FALSE(root.sound());
  // A message that depends on no other key leaves the error about the unknown key in place.
  Document other = Document::FromText("b: 1\n", "run.yaml");
  other.root().AddError("c", "c is needed");
  EXPECT_THAT(WhatOf<ConfigError>([&] { other.Finish(); }), HasSubstr("unknown key 'b'"));
}

TEST(OneError, ASectionIsSoundWhereItSaysWhatWasRead) {
  const auto sound = [](const std::string& text) {
    Document document = Document::FromText(text, "run.yaml");
    Reader layer = document.root().Section("layer");
    const int64_t outputs = layer.Int("outputs", 1).Min(1);
    const double value = layer.Section("init").Number("value", 0);
    EXPECT_GE(outputs + value, 0);
    return layer.sound();
  };
  EXPECT_TRUE(sound("layer: {outputs: 3, init: {value: 1}}"));
  EXPECT_TRUE(sound(""));
  EXPECT_TRUE(sound("other: 1"));
  EXPECT_FALSE(sound("layer: {outputs: 0}"));
  EXPECT_FALSE(sound("layer: {output: 3}"));
  EXPECT_FALSE(sound("layer: {init: {valu: 3}}"));
  EXPECT_FALSE(sound("layer: {init: {value: x}}"));
  EXPECT_FALSE(sound("layer: {init: [1]}"));
  EXPECT_FALSE(sound("layer: {outputs: 3, outputs: 4}"));
  EXPECT_FALSE(sound("layer: [1]"));
}

// The parser has already reached the next line when it finds the value missing.
TEST(OneError, AValueThatIsNotThereIsMissedAtItsKey) {
  Document document = Document::FromText("a:\nb: 1\n", "run.yaml");
  const int64_t a = document.root().Int("a", 1);
  const int64_t b = document.root().Int("b", 1);
  EXPECT_EQ(a, b);
  EXPECT_THAT(document.errors(),
              ::testing::ElementsAre("run.yaml:1:1: a must be an integer, found nothing"));
}

TEST(OneError, TheSameErrorAtSeveralPlacesHasTheirLines) {
  Document document =
      Document::FromText("list:\n  - {of: [a, b]}\n  - {of: b}\n  - {of: b}\n", "run.yaml");
  for (Reader& item : document.root().List("list")) {
    const std::vector<std::string> names = item.Strings("of", {});
    item.AddErrorOnce("b", "of", names.size() - 1, "nothing is called 'b'", "a is");
    item.AddErrorOnce("b", "of", names.size() - 1, "nothing is called 'b'", "a is");
  }
  EXPECT_THAT(document.errors(),
              ::testing::ElementsAre("run.yaml:2:14: nothing is called 'b' (and line 3, line 4)\n"
                                     "    a is"));
}

TEST(OneError, TheSameErrorTwiceOnTheFirstLineHasThatLine) {
  Document document = Document::FromText("list: [{of: b}, {of: b}]\n", "run.yaml");
  for (Reader& item : document.root().List("list")) {
    const std::vector<std::string> names = item.Strings("of", {});
    item.AddErrorOnce("b", "of", names.size() - 1, "nothing is called 'b'", "");
  }
  EXPECT_THAT(document.errors(),
              ::testing::ElementsAre("run.yaml:1:13: nothing is called 'b' (and line 1)"));
}

TEST(OneError, TheSameErrorOfAnArgumentHasTheArgument) {
  Document document = Document::FromText("a: [b]\n", "run.yaml", {"c=[b]"});
  Reader root = document.root();
  for (const char* key : {"a", "c"}) {
    const std::vector<std::string> names = root.Strings(key, {});
    root.AddErrorOnce("b", key, names.size() - 1, "nothing is called 'b'", "");
  }
  EXPECT_THAT(document.errors(),
              ::testing::ElementsAre("run.yaml:1:5: nothing is called 'b' (and --set c=[b])"));
}

// A key that should be a list of sections, and is none, has an error already; no check of its content adds one.
TEST(OneError, NothingIsCheckedByAListThatIsNone) {
  const auto error_of = [](const std::string& text) {
    return WhatOf<ConfigError>([&] {
      Document document = Document::FromText(text, "run.yaml");
      Reader root = document.root();
      for (Reader& part : root.List("parts")) {
        const int64_t size = part.Int("size", 1);
        EXPECT_EQ(size, 1);
      }
      const int64_t least = root.Int("least", 3);
      EXPECT_EQ(least, 3);
      root.AddError("least", "too few parts", "", {"parts"});
      document.Finish();
    });
  };
  EXPECT_THAT(error_of("parts: [{size: 1}]\n"), HasSubstr("too few parts"));
  EXPECT_THAT(error_of("parts:\n"), HasSubstr("too few parts"));
  EXPECT_THAT(error_of(""), HasSubstr("too few parts"));
  EXPECT_THAT(error_of("parts: {size: 1}\n"),
              AllOf(HasSubstr("parts must be a list of sections"), HasSubstr("1 error;")));
}

TEST(OneError, AConflictOfItsKeysLeavesASectionUnsound) {
  Document document = Document::FromText("layer: {a: 1, b: 2}\n", "run.yaml");
  Reader layer = document.root().Section("layer");
  const int64_t a = layer.Int("a", 0), b = layer.Int("b", 0);
  EXPECT_NE(a, b);
  EXPECT_TRUE(layer.sound());
  layer.AddError("", "a is not b", "", {"a", "b"});
  EXPECT_FALSE(layer.sound());
}

TEST(OneError, ATextMayBeAPlainNumber) {
  const auto read = [](const std::string& text) {
    Document document = Document::FromText(text, "run.yaml");
    const std::string label = document.root().String("label", "").NumbersToo();
    document.Finish();
    Document again = Document::FromText(document.EffectiveYaml(), "again.yaml");
    const std::string reread = again.root().String("label", "");
    EXPECT_EQ(reread, label);
    return label;
  };
  EXPECT_EQ(read("label: 1"), "1");
  EXPECT_EQ(read("label: 010"), "010");
  EXPECT_EQ(read("label: '1'"), "1");
  EXPECT_EQ(read("label: y"), "y");
  EXPECT_THAT(WhatOf<ConfigError>([&] { read("label: true"); }),
              HasSubstr("label must be a string, found 'true'"));
  EXPECT_THAT(WhatOf<ConfigError>([&] { read("label: [1]"); }), HasSubstr("must be a string"));
}

}  // namespace
}  // namespace dtrain::config
