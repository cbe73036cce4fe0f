// Tests `dtrain plan` with compressors, and its advice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/core/execution_plan.h"
#include "tests/cli/planned_four.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kWfbp = {"--json", "--schedules", "wfbp", "--collectives", "ring"};

std::vector<std::string> Asked(std::vector<std::string> words,
                               const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Returns names such as "topk gather" and "none ring".
std::vector<std::string> NamesOf(const std::vector<nlohmann::json>& rows) {
  std::vector<std::string> names;
  for (const nlohmann::json& row : rows) {
    const std::string compressor = row["compressor"], collective = row["collective"];
    const std::string exchange = row["exchange"];
    names.push_back((compressor.empty() ? "none" : compressor) + " " + collective + exchange);
  }
  return names;
}

nlohmann::json AdviceOf(const CommandOutcome& outcome) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return IndentedJson(outcome.out);
}

// ------------------------------------------------------------------ compressors

TEST(PlanCommand, WhatIsSentWholeHasACollectiveAndWhatIsSelectedAnExchange) {
  const TempFolder folder;
  const auto names = [&](const std::vector<std::string>& more) {
    return NamesOf(Rows(Plan(folder, Asked(kWfbp, more))));
  };
  const std::string topk = "compress={name: topk, density: 0.01}";
  EXPECT_THAT(names({"--set", topk}),
              ElementsAre("none ring", "topk gather", "topk gtopk", "topk oktopk"));
  EXPECT_THAT(names({"--set", topk, "--exchanges", "oktopk"}),
              ElementsAre("none ring", "topk oktopk"));
  EXPECT_THAT(names({"--set", topk, "--compressors", "none"}), ElementsAre("none ring"));
  EXPECT_THAT(names({"--set", "compress=fp16"}), ElementsAre("none ring", "fp16 ring"));
  EXPECT_THAT(names({"--compressors", "bf16,none,topk:density=0.1,bf16", "--exchanges", "gather"}),
              ElementsAre("none ring", "bf16 ring", "topk gather"));
  EXPECT_THAT(names({"--collectives", "double_trees", "--compressors", "fp16"}),
              ElementsAre("none ring", "none double_trees", "fp16 ring", "fp16 double_trees"));
  EXPECT_THAT(Plan(folder, Asked(kWfbp, {"--compressors", "topk:exchange=gtopk"})).err,
              AllOf(HasSubstr("'topk:exchange=gtopk'"), HasSubstr("give it with --exchanges")));
}

// The row without a compressor is that of a config without one.
TEST(PlanCommand, ACompressorChangesNoOtherRow) {
  const TempFolder folder;
  const auto rows = [&](const std::vector<std::string>& more) {
    auto all = Rows(Plan(folder, Asked(kWfbp, more)));
    for (nlohmann::json& row : all) row.erase("speedup_over_config");
    return all;
  };
  const auto alone = rows({}).at(0);
  EXPECT_EQ(rows({"--set", "compress={name: topk, density: 0.01, density_warmup: [0.5]}"}).at(0),
            alone);
  EXPECT_EQ(rows({"--set", "compress.name=topk", "--set", "compress.density=0.01"}).at(0), alone);
  const auto asked = rows({"--compressors", "topk:density=0.01"});
  EXPECT_EQ(rows({"--set", "compress={name: topk, density: 0.01}"}), asked);
  EXPECT_EQ(rows({"--set", "compress=fp16", "--compressors", "topk:density=0.01"}), asked);
}

TEST(PlanCommand, ACompressorHasItsOwnDensityElseTheConfigs) {
  const TempFolder folder;
  const auto densities = [&](const std::vector<std::string>& more) {
    std::vector<double> all;
    for (const nlohmann::json& row :
         Rows(Plan(folder, Asked(kWfbp, Asked({"--exchanges", "gather"}, more))))) {
      if (row.contains("density")) all.push_back(row["density"]);
    }
    return all;
  };
  const std::vector<std::string> set = {"--set", "compress.name=dgc", "--set",
                                        "compress.density=0.05"};
  EXPECT_THAT(densities(set), ElementsAre(0.05));
  EXPECT_THAT(
      densities(Asked(set, {"--compressors", "topk,topk:density=0.2,dgc,dgc:density=0.3,fp16"})),
      ElementsAre(0.05, 0.2, 0.05, 0.3));
  EXPECT_THAT(densities({"--compressors", "topk"}), ElementsAre(0.01)) << "the key's default";
  EXPECT_THAT(densities({"--set", "compress=fp16", "--compressors", "fp16,topk"}),
              ElementsAre(0.01));
}

// A ring of 4 at 1 Gbit/s sends half the bytes; 8 GB/s is the rate at which the cast values, the residual and the sum
// are written, or the residual, the selection and the sum.
TEST(PlanCommand, ACompressedSumCostsWhatTravelsAndTheSelection) {
  const TempFolder folder;
  const auto rows = Rows(Plan(folder, Asked(kWfbp, {"--compressors", "fp16,topk:density=0.01"})));
  const auto sum = [&](size_t row) { return rows.at(row)["sum_seconds"].get<double>(); };
  const double whole = sum(0), rounded = sum(1), gather = sum(2), gtopk = sum(3), oktopk = sum(4);
  EXPECT_NEAR(rounded, 300e-6 + 8e6 * (1.5 * 8e-9 + 0.75 / 8e9) + 3 * 16e6 / 8e9, 1e-3);
  EXPECT_LT(rounded, whole);
  for (const double selected : {gather, gtopk, oktopk}) {
    EXPECT_LT(selected, rounded);
    EXPECT_GT(selected, 3 * 16e6 / 8e9) << "the selection";
  }
  EXPECT_NE(gather, gtopk);
  EXPECT_NE(gather, oktopk);
  // 40,000 entries of 8 bytes from each of three other ranks.
  EXPECT_GT(gather, 3 * 40'000 * 8 * 8e-9);
}

TEST(PlanCommand, SelectionsTakeAsLongAsTheProfileHasMeasured) {
  const TempFolder folder;
  const auto rows = Rows(Plan(folder, Asked(kWfbp, {"--compressors", "topk:density=0.01,fp16"}),
                              {{"topk 0.01 by oktopk", 4, {{64, 1e-4}, {16'000'000, 0.002}}}}));
  ASSERT_THAT(NamesOf(rows),
              ElementsAre("none ring", "topk gather", "topk gtopk", "topk oktopk", "fp16 ring"));
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i]["sums"], i == 3 ? "measured" : "cluster") << i;
  }
  EXPECT_NEAR(rows[3]["sum_seconds"].get<double>(), 0.002, 1e-9);
}

// ------------------------------------------------------------------ advice

TEST(PlanCommand, TheAdviceIsTheShortestStepBesideWhatTheConfigAsksFor) {
  const TempFolder folder;
  const std::vector<std::string> asked = {
      "--schedules",   "wfbp,single",
      "--collectives", "ring,ordered",
      "--compressors", "topk:density=0.001",
      "--set",         "strategy={name: allreduce, fusion_bytes: 8000000}",
      "--set",         "collective=double_trees"};
  const nlohmann::json json = AdviceOf(Plan(folder, Asked({"--json"}, asked)));
  double best = 1e9;
  nlohmann::json row;
  for (const nlohmann::json& it : json["predictions"]) {
    if (it["step_seconds"] >= best) continue;
    best = it["step_seconds"];
    row = it;
  }
  for (const char* key : {"schedule", "collective", "compressor", "exchange", "density",
                          "step_seconds", "exposed_seconds", "sums"}) {
    EXPECT_EQ(json["advice"][key], row[key]) << key;
  }
  EXPECT_EQ(json["config"]["schedule"], "allreduce");
  EXPECT_EQ(json["config"]["collective"], "double_trees");
  const double own = json["config"]["step_seconds"];
  EXPECT_NEAR(row["speedup_over_config"].get<double>(), own / best, 1e-9);
  const auto two = Rows(Plan(folder, {"--json", "--schedules", "allreduce:fusion_bytes=8000000",
                                      "--collectives", "double_trees"}));
  EXPECT_EQ(json["config"]["step_seconds"], two.at(0)["step_seconds"]) << "with its keys";

  const std::string text = Plan(folder, asked).out;
  EXPECT_THAT(text,
              AllOf(HasSubstr("\nTake strategy wfbp+topk:density=0.001 with exchange "),
                    HasSubstr("\nallreduce of the config, with collective double_trees, takes "),
                    HasSubstr("allreduce, double_trees (the config)"),
                    HasSubstr("topk:density=0.001 changes what is computed; without a compressor "
                              "take wfbp with collective ordered")));
  const std::string instead = text.substr(text.find("instead of it"));
  for (const char* other :
       {"\nwfbp, ordered ", "\nsingle+topk:density=0.001, ", "\nwfbp+topk:density=0.001, g"}) {
    EXPECT_THAT(instead, HasSubstr(other)) << other;
  }
  EXPECT_THAT(instead, Not(HasSubstr("ring"))) << "ordered is the best of those without";
  const std::string config = instead.substr(0, instead.find('\n', instead.find("(the config)")));
  EXPECT_EQ(std::stod(config.substr(config.find_last_of(' '))), std::round(100 * own / best) / 100)
      << config;
}

TEST(PlanCommand, TheConfigsOwnBucketsMayBeThoseOfAPlanFile) {
  const TempFolder folder;
  ExecutionPlan plan{.isa = "avx2", .workers = 4, .collective = "ordered"};
  plan.buckets = {{0, 4'000'000}};
  plan.measured_for = "mgwfbp, 4 workers, ordered";
  const std::vector<std::string> asked = {
      "--json",  "--schedules", "mgwfbp,single",       "--collectives",
      "ordered", "--set",       "strategy.name=mgwfbp"};
  const nlohmann::json without = AdviceOf(Plan(folder, asked));
  EXPECT_EQ(without["config"]["step_seconds"], without["predictions"][0]["step_seconds"]);
  const nlohmann::json with = AdviceOf(Plan(
      folder, Asked(asked, {"--set", "plan=" + folder.Write("plan.json", ToJson(plan)).string()})));
  EXPECT_EQ(with["config"]["step_seconds"], with["predictions"][1]["step_seconds"]);
  EXPECT_LT(with["advice"]["step_seconds"], with["config"]["step_seconds"]);
}

TEST(PlanCommand, OneRowAloneIsComparedWithTheConfig) {
  const TempFolder folder;
  const std::string text = Plan(folder, {"--schedules", "wfbp", "--collectives", "ring"}).out;
  EXPECT_THAT(text, AllOf(HasSubstr("(the config)"), Not(HasSubstr("changes what"))));
  // A strategy with servers makes no all-reduce.
  EXPECT_THAT(
      Plan(folder,
           {"--schedules", "wfbp", "--collectives", "ring", "--set", "strategy.name=ps_bsp"})
          .out,
      AllOf(HasSubstr("Take strategy wfbp"), Not(HasSubstr("config")), Not(HasSubstr("instead"))));
}

// A step of 6 s hides all but the last of four sums: topk would save 48 ms, 0.8 % of it; of a step of 3 s this is more
// than 1 %.
TEST(PlanCommand, ACompressorIsAdvisedWhereItIsWorthIt) {
  const TempFolder folder;
  const auto advised = [&](const std::vector<std::string>& more) {
    return Plan(folder, Asked({"--schedules", "wfbp", "--collectives", "ring", "--compressors",
                               "topk:density=0.001"},
                              more));
  };
  EXPECT_THAT(advised({"--set", "cluster.step_seconds=6"}).out,
              AllOf(HasSubstr("Take strategy wfbp with collective ring"),
                    HasSubstr("less than 1 % of a step less, and changes what is computed")));
  const std::vector<std::string> shorter = {"--set", "cluster.step_seconds=3"};
  EXPECT_THAT(advised(shorter).out,
              AllOf(HasSubstr("Take strategy wfbp+topk:density=0.001 with exchange"),
                    Not(HasSubstr("of a step less"))));
  EXPECT_EQ(
      AdviceOf(advised({"--json", "--set", "cluster.step_seconds=6"}))["advice"]["compressor"], "");
}

// The measured time of a ring is 20 ms.  By the cluster, halving and doubling would take 190 ms, and with 10 Gbit/s
// less than 20.
TEST(PlanCommand, TheAdviceGoesByWhatWasMeasured) {
  const TempFolder folder;
  const std::vector<SumProfile> sums = {{"ring", 4, {{64, 0.001}, {16'000'000, 0.02}}}};
  const std::vector<std::string> asked = {"--schedules", "single", "--collectives",
                                          "ring,halving_doubling"};
  const std::vector<std::string> fast = {"--set", "cluster.network.bandwidth_gbit_s=100"};
  const auto advised = [&](const std::vector<std::string>& more,
                           const std::vector<SumProfile>& by) {
    return AdviceOf(Plan(folder, Asked(Asked({"--json"}, asked), more), by));
  };
  const nlohmann::json described = advised(fast, {});
  EXPECT_FALSE(described.contains("shorter_if_described_well"));
  const nlohmann::json mixed = advised(fast, sums);
  EXPECT_EQ(mixed["advice"]["collective"], "ring");
  EXPECT_EQ(mixed["advice"]["sums"], "measured");
  EXPECT_EQ(mixed["shorter_if_described_well"]["collective"], "halving_doubling");
  EXPECT_FALSE(advised({}, sums).contains("shorter_if_described_well"));

  const std::string text = Plan(folder, Asked(asked, fast), sums).out;
  EXPECT_THAT(text,
              AllOf(HasSubstr("Take strategy single with collective ring"),
                    HasSubstr("has measured some of the sums and not the others"),
                    HasSubstr("By the description of the cluster alone single with collective "
                              "halving_doubling would be shorter"),
                    HasSubstr("single, halving_doubling (described)")));
  EXPECT_THAT(Plan(folder, Asked(asked, {}), sums).out,
              AllOf(HasSubstr("has measured some"), Not(HasSubstr("would be shorter"))));
  EXPECT_THAT(Plan(folder, Asked(asked, fast)).out,
              AllOf(Not(HasSubstr("has measured some")), Not(HasSubstr("described)"))));
}

// randk reads the values once less, which is too small a difference to prefer it.
TEST(PlanCommand, OfCompressorsThatDifferLittleTheFirstNamedIsAdvised) {
  const TempFolder folder;
  const auto advised = [&](const std::string& compressors) {
    return AdviceOf(Plan(folder, {"--json", "--compressors", compressors, "--exchanges",
                                  "gather"}))["advice"]["compressor"];
  };
  EXPECT_EQ(advised("topk:density=0.001,randk:density=0.001"), "topk");
  EXPECT_EQ(advised("randk:density=0.001,topk:density=0.001"), "randk");
  EXPECT_EQ(advised("fp16,topk:density=0.001"), "topk") << "by far";
}

TEST(PlanCommand, SaysWhatItLeavesOut) {
  const TempFolder folder;
  const auto said = [&](const std::string& key) {
    const CommandOutcome outcome = Plan(folder, {"--set", key});
    EXPECT_EQ(outcome.code, 0);
    return outcome.err;
  };
  EXPECT_THAT(said("overlap_buckets=true"), HasSubstr("overlap_buckets is not predicted"));
  EXPECT_THAT(said("strategy.name=ps_asp"), HasSubstr("strategy ps_asp is no schedule"));
  EXPECT_EQ(said("strategy.name=wfbp"), "");
}

}  // namespace
}  // namespace dtrain
