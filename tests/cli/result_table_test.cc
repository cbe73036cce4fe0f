#include "framework/cli/result_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace dtrain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ResultTable Table() {
  ResultTable table("strategy", "seeds",
                    {{"seconds", "seconds", 1, true}, {"loss", "loss", 2}, {"bleu", "BLEU", 2}});
  table.Add({.name = "ps_ssp", .runs = 3, .values = {{1, 2, 3}, {0.5, 0.25}, {}}});
  table.Add({.name = "gssp+gdtopk",
             .settings = {{"strategy.name", "gssp"}, {"batch", "64"}},
             .runs = 1,
             .values = {{7}, {}, {}}});
  return table;
}

TEST(ResultTable, ShowsMeanDeviationAndHowManyRunsHaveAValue) {
  EXPECT_EQ(Table().Text(),
            "strategy       seconds               loss\n"
            "ps_ssp       2.0 +-1.0  0.38 +-0.18 (2/3)\n"
            "gssp+gdtopk        7.0                  -\n")
      << "and no column that no run has";
}

TEST(ResultTable, JsonHasALineARow) {
  EXPECT_THAT(
      Table().JsonLines(),
      ElementsAre(R"({"strategy":"ps_ssp","seeds":3,"seconds":{"mean":2.0,"deviation":1.0},)"
                  R"("loss":{"mean":0.375,"deviation":0.1767766952966369,"runs":2}})",
                  R"({"strategy":"gssp+gdtopk","settings":{"strategy.name":"gssp",)"
                  R"("batch":"64"},"seeds":1,"seconds":{"mean":7.0,"deviation":0.0}})"));
}

TEST(ResultTable, AColumnWithTwoKeysHasBothInJson) {
  ResultTable table("run", "runs", {{"loss", "loss", 2, false, "test_loss"}});
  table.Add({.name = "all", .runs = 1, .values = {{0.5}}});
  EXPECT_THAT(table.JsonLines(),
              ElementsAre(R"({"run":"all","runs":1,"loss":{"mean":0.5,"deviation":0.0},)"
                          R"("test_loss":{"mean":0.5,"deviation":0.0}})"));
  EXPECT_EQ(table.Text(), "run  loss\nall  0.50\n");
}

TEST(ResultTable, AColumnThatIsAlwaysThereIsShownEmpty) {
  ResultTable table("run", "runs", {{"seconds", "seconds", 1, true}});
  table.Add({.name = "all", .values = {{}}});
  EXPECT_EQ(table.Text(),
            "run  seconds\n"
            "all        -\n");
  EXPECT_EQ(table.Json(), "[\n  {\n    \"run\": \"all\",\n    \"runs\": 0\n  }\n]\n");
}

size_t WidthOf(const std::string& text) {
  std::istringstream in(text);
  size_t width = 0;
  for (std::string line; std::getline(in, line);) width = std::max(width, line.size());
  return width;
}

// Ten columns of several runs, as --compare with --seeds prints them.
TEST(ResultTable, WhatAHundredColumnsDoNotHoldFollowsBelowUnderTheSameNames) {
  std::vector<TableColumn> columns;
  for (int i = 0; i < 10; ++i) columns.push_back({"c", "column " + std::to_string(i), 2});
  ResultTable table("strategy", "seeds", columns);
  for (const char* const name : {"ps_ssp", "allreduce+gaussiank"}) {
    table.Add({.name = name, .runs = 2, .values = {10, {1234.5, 6789.25}}});
  }
  const std::string text = table.Text();
  EXPECT_EQ(WidthOf(text), 95U);
  const std::string gap(22, ' ');
  EXPECT_THAT(text, StartsWith("strategy" + gap + "column 0           column 1 "));
  EXPECT_THAT(text, HasSubstr("\nps_ssp               4011.88 +-3927.80  4011.88"));
  EXPECT_THAT(text, HasSubstr("\n\nstrategy" + gap + "column 4  "));
  EXPECT_THAT(text, HasSubstr("\n\nstrategy" + gap + "column 8  "));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 11) << "three blocks, two empty lines";
}

TEST(ResultTable, AHundredColumnsFitAndFortyAreNoLongName) {
  const auto lines = [](size_t name, size_t title) {
    ResultTable table("run", "runs", {{"loss", "loss", 2}, {"other", std::string(title, 't'), 2}});
    table.Add({.name = std::string(name, 'x'), .runs = 1, .values = {{0.25}, {0.5}}});
    const std::string text = table.Text();
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(lines(40, 52), 2) << "40 + 2 + 4 + 2 + 52 columns";
  EXPECT_EQ(lines(40, 53), 5) << "two blocks and a line between them";
  EXPECT_EQ(lines(41, 10), 3) << "the name has a line of its own";
}

TEST(ResultTable, NamesThatAreLongStandAboveTheirRow) {
  const std::string name(90, 'x');
  ResultTable table("run", "runs", {{"loss", "loss", 2}, {"seconds", "seconds", 1}});
  table.Add({.name = name, .runs = 1, .values = {{0.25}, {12}}});
  table.Add({.name = "short", .runs = 1, .values = {{0.5}, {7}}});
  EXPECT_EQ(table.Text(), "run  loss  seconds\n" + name +
                              "\n"
                              "     0.25     12.0\n"
                              "short\n"
                              "     0.50      7.0\n");
}

}  // namespace
}  // namespace dtrain
