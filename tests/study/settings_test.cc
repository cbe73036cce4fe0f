// Tests the values of a sweep's --set, and the names of simulate --compare.
#include "framework/study/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(SettingValues, AreSplitAtCommasOutsideOfBracketsAndQuotes) {
  EXPECT_THAT(SplitAtCommas("1,2, 3"), ElementsAre("1", "2", "3"));
  EXPECT_THAT(SplitAtCommas("[1,2]"), ElementsAre("[1,2]"));
  EXPECT_THAT(SplitAtCommas("[1, 2],[1, [2, 3]]"), ElementsAre("[1, 2]", "[1, [2, 3]]"));
  EXPECT_THAT(SplitAtCommas("{name: step, at: [6, 8]},cosine"),
              ElementsAre("{name: step, at: [6, 8]}", "cosine"));
  EXPECT_THAT(SplitAtCommas("'a,b',\"c,[\""), ElementsAre("'a,b'", "\"c,[\""));
  EXPECT_THAT(SplitAtCommas(""), ElementsAre(""));
}

TEST(SettingValues, CombineTheLastOneFastest) {
  const auto settings = ReadVariedSettings({"a.b=1,2", "c=x", "seed=1,2"});
  const auto combinations = Combinations(settings);
  std::vector<std::string> names;
  for (const auto& combination : combinations) {
    names.push_back(FolderNameOf(VariedOf(combination, settings)));
  }
  EXPECT_THAT(names, ElementsAre("a.b=1,seed=1", "a.b=1,seed=2", "a.b=2,seed=1", "a.b=2,seed=2"));
  EXPECT_THAT(combinations[2],
              ElementsAre(Setting{"a.b", "2"}, Setting{"c", "x"}, Setting{"seed", "1"}));
  EXPECT_EQ(Combinations({}).size(), 1u);
}

TEST(SettingValues, ErrorsAreNamed) {
  const auto error = [](const std::vector<std::string>& arguments) {
    return WhatOf<UsageError>([&] { ReadVariedSettings(arguments); });
  };
  EXPECT_THAT(error({"seed"}), HasSubstr("--set seed: expected key=value"));
  EXPECT_THAT(error({"=1"}), HasSubstr("--set =1: expected key=value"));
  EXPECT_THAT(error({"seed=1", "seed=2"}), HasSubstr("--set seed is given twice"));
  EXPECT_THAT(error({"seed=1,,2"}), HasSubstr("there is nothing between two commas"));
  EXPECT_EQ(ReadVariedSettings({"data.root="})[0].values, std::vector<std::string>{""});
}

TEST(SettingValues, FoldersHavePlainNames) {
  EXPECT_EQ(FolderNameOf({}), "run");
  EXPECT_EQ(FolderNameOf({{"data.root", "/a b/c"}, {"x", "[1, 2]"}}), "data.root=_a_b_c,x=_1,_2_");
  const std::string one = FolderNameOf({{"key", std::string(300, 'a')}});
  const std::string other = FolderNameOf({{"key", std::string(301, 'a')}});
  EXPECT_EQ(one.size(), 200u + 1 + 12) << "a part of it, and a part of its hash";
  const std::string longest = "key=" + std::string(196, 'a');
  EXPECT_EQ(FolderNameOf({{"key", std::string(196, 'a')}}), longest);
  EXPECT_THAT(FolderNameOf({{"key", std::string(197, 'a')}}), StartsWith(longest + "-"));
  EXPECT_NE(one, other);
}

TEST(ComparedStrategy, NamesAStrategyItsKeysAndACompressor) {
  EXPECT_THAT(ComparedOverrides("gssp", "ps_asp"), ElementsAre("strategy.name=gssp"));
  EXPECT_THAT(ComparedOverrides("ps_asp", "ps_asp"), IsEmpty()) << "it keeps the config's keys";
  EXPECT_THAT(ComparedOverrides("gssp+gdtopk", "ps_asp"),
              ElementsAre("strategy.name=gssp", "compress.name=gdtopk"));
  EXPECT_THAT(ComparedOverrides("ps_asp+topk:prefetch=true,compress.density=0.01", "ps_asp"),
              ElementsAre("compress.name=topk", "strategy.prefetch=true", "compress.density=0.01"));
  EXPECT_THAT(ComparedOverrides("ps_ssp:staleness=5,servers=2", "ps_asp"),
              ElementsAre("strategy.name=ps_ssp", "strategy.staleness=5", "strategy.servers=2"));
  EXPECT_THAT(ComparedOverrides("", "ps_asp"), IsEmpty());
  EXPECT_THAT(ComparedOverrides("ps_ssp:", "ps_asp"), ElementsAre("strategy.name=ps_ssp"));
  EXPECT_THAT(ComparedOverrides("ps_ssp", "ps_asp", "topk"),
              ElementsAre("strategy.name=ps_ssp", "compress.name=none"));
  EXPECT_THAT(ComparedOverrides("ps_asp+topk", "ps_asp", "topk"), IsEmpty());
}

}  // namespace
}  // namespace dtrain
