// Tests the files of measured compressor costs, and the times that follow from them.
#include "framework/core/compress_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"
#include "tests/data/temp_folder.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Fixed part 50 us and 1 ns an entry at density 0.01; twice that at 0.1.
CompressCost SelectorCost() {
  return {.compressor = "gaussiank:loop=published",
          .samples = {{.density = 0.01, .entries = 10'000, .seconds = 60e-6},
                      {.density = 0.01, .entries = 100'000, .seconds = 150e-6},
                      {.density = 0.1, .entries = 10'000, .seconds = 120e-6},
                      {.density = 0.1, .entries = 100'000, .seconds = 300e-6}}};
}

CompressCost CoderCost() {
  return {.compressor = "ef_signsgd",
          .samples = {{.workers = 2, .entries = 1000, .seconds = 10e-6, .decode_seconds = 20e-6},
                      {.workers = 4, .entries = 1000, .seconds = 10e-6, .decode_seconds = 30e-6}}};
}

CompressCosts ThreeCosts() {
  return {.device = "cuda",
          .machine = "a \"large\" GPU",
          .isa = "avx512",
          .threads = 2,
          .source = "by hand",
          .costs = {SelectorCost(), CoderCost(), {"fp16", {{.entries = 10, .seconds = 1.25e-7}}}}};
}

std::string CostErrorOf(const std::string& text) {
  return WhatOf<ConfigError>([&] { CompressCostsFromJson(text, "costs.json"); });
}

std::string EditedCosts(const std::string& from, const std::string& to) {
  std::string text = ToJson(ThreeCosts());
  EXPECT_NE(text.find(from), std::string::npos) << from;
  return text.replace(text.find(from), from.size(), to);
}

TEST(CompressCost, AFileHasWhatWasWritten) {
  const TempFolder folder;
  const auto path = folder.path() / "costs.json";
  WriteFileDurably(path, ToJson(ThreeCosts()));
  CompressCosts read = ReadCompressCosts(path);
  for (CompressCost& cost : read.costs) {
    EXPECT_EQ(cost.file, path.string());
    EXPECT_EQ(cost.sha256, Sha256::Of(ToJson(ThreeCosts())));
    cost.file = cost.sha256 = "";
  }
  EXPECT_EQ(read, ThreeCosts());
  EXPECT_EQ(*read.Find("ef_signsgd"), CoderCost());
  EXPECT_EQ(read.Find("gaussiank"), nullptr);
  EXPECT_EQ(read.Names(), "gaussiank:loop=published, ef_signsgd, fp16");
}

TEST(CompressCost, OneOfThemIsPartOfALargerFile) {
  CompressCost cost = CoderCost();
  cost.file = "configs/costs/here.json";
  cost.sha256 = "1234";
  EXPECT_EQ(CompressCostFromJson(ToJson(cost), "plan.json"), cost);
}

TEST(CompressCost, TimesAreLinearBetweenMeasuredSizes) {
  const CompressCost cost = SelectorCost();
  EXPECT_EQ(cost.SelectTime(10'000, 0.01), 60'000);
  EXPECT_EQ(cost.SelectTime(100'000, 0.1), 300'000);
  EXPECT_EQ(cost.SelectTime(20'000, 0.01), 70'000);
  EXPECT_EQ(cost.SelectTime(1000, 0.01), 51'000) << "50 us and 1 ns an entry";
  EXPECT_EQ(cost.SelectTime(1'000'000, 0.01), 1'050'000);
  EXPECT_EQ(cost.SelectTime(0, 0.01), 0) << "nothing to select from";
}

TEST(CompressCost, TimesAreLinearBetweenMeasuredDensities) {
  const CompressCost cost = SelectorCost();
  EXPECT_EQ(cost.SelectTime(10'000, 0.055), 90'000);
  EXPECT_EQ(cost.SelectTime(10'000, 0.001), 60'000);
  EXPECT_EQ(cost.SelectTime(10'000, 0.9), 120'000);
}

// A line that would be negative at 0 ends there, and one that falls is level.
TEST(CompressCost, TheFixedPartIsNeitherNegativeNorMoreThanTheSmallestTime) {
  const CompressCost steep{"topk",
                           {{.density = 1, .entries = 10, .seconds = 1e-6},
                            {.density = 1, .entries = 20, .seconds = 3e-6}}};
  EXPECT_EQ(steep.SelectTime(5, 1), 500);
  EXPECT_EQ(steep.SelectTime(30, 1), 5000);
  const CompressCost falling{"topk",
                             {{.density = 1, .entries = 10, .seconds = 2e-6},
                              {.density = 1, .entries = 20, .seconds = 1e-6}}};
  EXPECT_EQ(falling.SelectTime(5, 1), 2000);
  EXPECT_EQ(falling.SelectTime(1000, 1), 0);
  const CompressCost single{"topk", {{.density = 1, .entries = 10, .seconds = 2e-6}}};
  EXPECT_EQ(single.SelectTime(5, 1), 1000);
  EXPECT_EQ(single.SelectTime(50, 1), 10'000);
}

TEST(CompressCost, ACoderDecodesWhatAllWorkersSend) {
  const CompressCost cost = CoderCost();
  EXPECT_EQ(cost.EncodeTime(1000, 2), 10'000);
  EXPECT_EQ(cost.EncodeTime(1000, 16), 10'000);
  EXPECT_EQ(cost.DecodeTime(1000, 2), 20'000);
  EXPECT_EQ(cost.DecodeTime(1000, 3), 25'000);
  EXPECT_EQ(cost.DecodeTime(1000, 16), 90'000);
}

TEST(CompressCost, ADamagedFileIsRefused) {
  const std::string where = "costs.json: costs[0]: samples[1]: ";
  EXPECT_THAT(CostErrorOf(ToJson(ThreeCosts()).substr(0, 300)), HasSubstr("costs.json: not JSON"));
  EXPECT_EQ(CostErrorOf("[]"), "costs.json: not a JSON object");
  EXPECT_EQ(CostErrorOf(EditedCosts("\"schema\": 1", "\"schema\": 2")),
            "costs.json: schema 2, this program reads those up to 1");
  EXPECT_EQ(CostErrorOf(EditedCosts("\"device\"", "\"divice\"")),
            "costs.json: key 'device' is missing");
  EXPECT_THAT(CostErrorOf(EditedCosts("\"threads\": 2,", "\"threads\": 2, \"thread\": 2,")),
              HasSubstr("thread"));
  EXPECT_EQ(CostErrorOf(EditedCosts("\"entries\":100000", "\"entries\":10000")),
            where + "not behind the entry before, by density, workers and then entries");
  EXPECT_EQ(CostErrorOf(EditedCosts("\"entries\":100000", "\"workers\":2,\"entries\":100000")),
            where + "key 'decode_seconds' is missing");
  EXPECT_EQ(CostErrorOf(EditedCosts("{\"density\":0.01,\"entries\":100000", "{\"entries\":100000")),
            where + "density and workers: not those that the entry before has");
  EXPECT_EQ(CostErrorOf(EditedCosts("\"entries\":100000", "\"entries\":0")),
            where + "entries: a vector without entries");
  EXPECT_EQ(CostErrorOf(EditedCosts("0.00015", "-1")), where + "seconds: negative");
  EXPECT_EQ(CostErrorOf(EditedCosts("\"ef_signsgd\"", "\"gaussiank:loop=published\"")),
            "costs.json: costs[1]: compressor: gaussiank:loop=published for the second time");
}

}  // namespace
}  // namespace dtrain
