#include "framework/cli/result_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrain {
namespace {

using ::testing::ElementsAre;

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
            "strategy               seconds              loss\n"
            "ps_ssp               2.0 +-1.0 0.38 +-0.18 (2/3)\n"
            "gssp+gdtopk                7.0                 -\n")
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

TEST(ResultTable, AColumnThatIsAlwaysThereIsShownEmpty) {
  ResultTable table("run", "runs", {{"seconds", "seconds", 1, true}});
  table.Add({.name = "all", .values = {{}}});
  EXPECT_EQ(table.Text(),
            "run                    seconds\n"
            "all                          -\n");
  EXPECT_EQ(table.Json(), "[\n  {\n    \"run\": \"all\",\n    \"runs\": 0\n  }\n]\n");
}

}  // namespace
}  // namespace dtrain
