// Tests `dtrain plan`: the schedules and collectives that it predicts, and its messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/planned_four.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PlanCommand, PredictsTheSchedulesAndCollectivesThatAreNamed) {
  const TempFolder folder;
  const auto rows = Rows(Plan(folder, {"--json", "--schedules", "mgwfbp,single", "--collectives",
                                       "ring,halving_doubling"}));
  ASSERT_EQ(rows.size(), 4u);
  const std::vector<std::vector<std::string>> names = {{"mgwfbp", "ring"},
                                                       {"single", "ring"},
                                                       {"mgwfbp", "halving_doubling"},
                                                       {"single", "halving_doubling"}};
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i]["schedule"], names[i][0]);
    EXPECT_EQ(rows[i]["collective"], names[i][1]);
  }
  EXPECT_LT(rows[0]["step_seconds"], rows[1]["step_seconds"]);
}

// A row does not depend on the other rows that are requested.
TEST(PlanCommand, NamesChangeNoPrediction) {
  const TempFolder folder;
  const auto all = Rows(Plan(folder, {"--json"}));
  for (const nlohmann::json& row : all) {
    EXPECT_EQ(Rows(Plan(folder, {"--json", "--schedules", row["schedule"], "--collectives",
                                 row["collective"]})),
              std::vector{row});
  }
  EXPECT_EQ(all.size(), 6u * 5);
}

// A ring of 4: a = 6 latencies of 50 us; twice 3/4 of the bytes at 1 Gbit/s, 3/4 of them added at 8 GB/s.
TEST(PlanCommand, ARowTellsWhatASumCosts) {
  const TempFolder folder;
  const auto rows =
      Rows(Plan(folder, {"--json", "--schedules", "single", "--collectives", "ring"}));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_NEAR(rows[0]["start_up_seconds"].get<double>(), 300e-6, 1e-8);
  const double sum = 300e-6 + 16e6 * (1.5 * 8e-9 + 0.75 / 8e9);
  EXPECT_NEAR(rows[0]["sum_seconds"].get<double>(), sum, 1e-6);
  EXPECT_NEAR(rows[0]["step_seconds"].get<double>(), 0.06 + sum, 1e-6);
}

// Layers are ready 30, 40, 50 and 60 ms after the step began, and the sum of one layer takes longer than 10 ms.
TEST(PlanCommand, ARowTellsWhenItsBucketsAreOnTheirWay) {
  const TempFolder folder;
  const auto rows =
      Rows(Plan(folder, {"--json", "--schedules", "wfbp,naive", "--collectives", "ring"}));
  ASSERT_EQ(rows.size(), 2u);
  for (const nlohmann::json& row : rows) {
    ASSERT_EQ(row["sendings"].size(), 4u);
    double free = 0;
    for (int i = 0; i < 4; ++i) {
      const nlohmann::json& sending = row["sendings"][static_cast<size_t>(i)];
      EXPECT_EQ(sending["begin"], 1'000'000 * i);
      EXPECT_EQ(sending["end"], 1'000'000 * (i + 1));
      EXPECT_EQ(sending["gradients"], 1);
      const double ready = row["schedule"] == "naive" ? 0.06 : 0.03 + 0.01 * i;
      EXPECT_NEAR(sending["ready_seconds"].get<double>(), ready, 1e-9);
      EXPECT_NEAR(sending["begin_seconds"].get<double>(), std::max(free, ready), 1e-9);
      free = sending["end_seconds"];
    }
    EXPECT_EQ(row["step_seconds"], free);
  }
}

// The profile is from a run without slowdown and with the same number of samples.
TEST(PlanCommand, GradientsAreReadyAsTheProfileHasMeasured) {
  const TempFolder folder;
  const std::vector<double> ready = {5.4, 5.3, 5.2, 5.1};
  const auto seconds = [&](const std::vector<std::string>& settings) {
    std::vector<std::string> asked = {"--json", "--schedules", "wfbp", "--collectives", "ring"};
    for (const std::string& it : settings) asked.insert(asked.end(), {"--set", it});
    const auto rows = Rows(Plan(folder, asked, {}, ready));
    std::vector<double> all;
    for (const nlohmann::json& it : rows.at(0)["sendings"]) all.push_back(it["ready_seconds"]);
    EXPECT_EQ(rows[0]["compute_seconds"], all.back());
    return all;
  };
  using ::testing::DoubleNear;
  using ::testing::ElementsAre;
  EXPECT_THAT(seconds({}), ElementsAre(5.1, 5.2, 5.3, 5.4));
  EXPECT_THAT(seconds({"batch=16"}), ElementsAre(DoubleNear(2.55, 1e-9), DoubleNear(2.6, 1e-9),
                                                 DoubleNear(2.65, 1e-9), DoubleNear(2.7, 1e-9)));
  EXPECT_THAT(seconds({"cluster.slowdown=[1, 2]"}).back(), DoubleNear(10.8, 1e-9));
  EXPECT_THAT(seconds({"cluster.step_seconds=8.1"}).front(), DoubleNear(7.65, 1e-9));
}

TEST(PlanCommand, ASimulatedStepTakesTheTimesThatWereMeasured) {
  const TempFolder folder;
  Plan(folder, {"--collectives", "ring"}, {}, {5.4, 5.3, 5.2, 5.1});  // writes the profile
  const CommandOutcome outcome = RunCommand(
      {"simulate", "--json", "--profile", (folder.path() / "profile.json").string(), "--workers",
       "4", "--set", "batch=32", "--set", "max_steps=3", "--set", "cluster.network.latency_us=1"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NEAR(nlohmann::json::parse(outcome.out)["step_seconds"]["p50"].get<double>(), 5.43, 0.03);
}

// A sum of 16 MB takes 20 ms as measured, and 192 ms by the cluster; measured times are not used for another number of
// workers or another collective.
TEST(PlanCommand, SumsTakeAsLongAsTheProfileHasMeasured) {
  const TempFolder folder;
  const auto times = [](double seconds) {
    return std::vector<SumProfile::Time>{{1000, seconds / 100}, {16'000'000, seconds}};
  };
  const std::vector<std::string> asked = {"--json", "--schedules", "single", "--collectives",
                                          "ring,halving_doubling"};
  const auto rows = Rows(Plan(folder, asked, {{"ring", 2, times(0.1)}, {"ring", 4, times(0.02)}}));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["sums"], "measured");
  EXPECT_NEAR(rows[0]["sum_seconds"].get<double>(), 0.02, 1e-9);
  EXPECT_NEAR(rows[0]["step_seconds"].get<double>(), 0.06 + 0.02, 1e-9);
  EXPECT_EQ(rows[1]["sums"], "cluster");
  EXPECT_EQ(rows[1], Rows(Plan(folder, asked))[1]);
}

// If the measured start-up time of a sum is 30 ms, a simulated run sends fewer buckets than by the cluster.
TEST(PlanCommand, ASimulationSendsTheBucketsThatMeasuredSumsAskFor) {
  const TempFolder folder;
  const auto messages = [&](const std::vector<SumProfile>& sums) {
    Plan(folder, {"--collectives", "ring"}, sums);  // writes the profile
    const CommandOutcome outcome =
        RunCommand({"simulate", "--json", "--profile", (folder.path() / "profile.json").string(),
                    "--workers", "4", "--set", "batch=32", "--set", "strategy.name=mgwfbp", "--set",
                    "collective=ring", "--set", "max_steps=2"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out)["communication"]["messages"].get<int>();
  };
  EXPECT_LT(messages({{"ring", 4, {{64, 0.03}, {16'000'000, 0.04}}}}), messages({}));
}

TEST(PlanCommand, AScheduleMayHaveAKey) {
  const TempFolder folder;
  const auto rows =
      Rows(Plan(folder, {"--json", "--schedules", "allreduce,allreduce:fusion_bytes=8000000",
                         "--collectives", "ring"}));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["buckets"], 1);
  EXPECT_EQ(rows[1]["buckets"], 2);
}

TEST(PlanCommand, WhatHasNoPlanIsRefused) {
  const TempFolder folder;
  const auto error = [&](const std::vector<std::string>& arguments) {
    const CommandOutcome outcome = Plan(folder, arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_THAT(error({"--schedules", "wfbp,ps_bsp", "--collectives", "ring"}),
              AllOf(HasSubstr("'ps_bsp' is no schedule of all-reduces"), HasSubstr("mgwfbp")));
  EXPECT_THAT(error({"--schedules", "wfpb", "--collectives", "ring"}), HasSubstr("'wfbp'?"));
  EXPECT_THAT(error({"--schedules", "mgwfbp:rule=best"}), HasSubstr("published"));
  EXPECT_THAT(error({"--collectives", "rign"}), HasSubstr("ring"));
  EXPECT_THAT(error({"--compressors", "topkk"}), HasSubstr("'topk'?"));
  EXPECT_THAT(error({"--compressors", "gdtopk"}), HasSubstr("takes no compressor 'gdtopk'"));
  EXPECT_THAT(error({"--compressors", "topk:density=2"}), HasSubstr("density"));
  EXPECT_THAT(error({"--compressors", "fp16:density=0.1"}), HasSubstr("density"));
  EXPECT_THAT(error({"--compressors", "topk", "--exchanges", "tree"}), HasSubstr("gtopk"));
  EXPECT_THAT(error({"--compressors", "fp16", "--exchanges", "gather"}),
              HasSubstr("no compressor sparsifies them"));
}

// --set of the config's own compressor does not apply to the others, and an error in the last compressor is found
// before the first one runs.
TEST(SimulateCommand, ComparesACompressorWithKeysBesideNone) {
  const TempFolder folder;
  Plan(folder, {});  // writes the profile
  const auto compare = [&](const std::vector<std::string>& names) {
    std::vector<std::string> words = {"simulate",  "--json",
                                      "--profile", (folder.path() / "profile.json").string(),
                                      "--workers", "4",
                                      "--set",     "max_steps=5",
                                      "--set",     "strategy.name=ps_ssp",
                                      "--set",     "strategy.staleness=5",
                                      "--set",     "compress.name=topk",
                                      "--set",     "compress.density=0.02",
                                      "--compare"};
    words.insert(words.end(), names.begin(), names.end());
    return RunCommand(words);
  };
  const CommandOutcome good = compare({"ps_ssp", "allreduce", "allreduce+fp16", "allreduce+topk"});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_EQ(nlohmann::json::parse(good.out).size(), 4u) << good.out;
  const CommandOutcome bad = compare({"mgwfbp+topk", "ps_bsp+topk"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("strategy 'ps_bsp' takes no compressor"));
  EXPECT_THAT(bad.err, Not(HasSubstr("measures its buckets"))) << "a run of mgwfbp+topk begins so";
}

}  // namespace
}  // namespace dtrain
