#include "framework/study/study_plan.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "framework/core/error.h"
#include "tests/study/study_files.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

constexpr char kFourServers[] =
    "  SSP: {strategy.name: ps_ssp}\n"
    "  GSSP: {strategy.name: gssp, strategy.servers: 4}\n"
    "  all-reduce: {strategy.name: allreduce}\n";

class StudyPlanTest : public StudyTest {
 protected:
  StudyPlan Of(const std::string& more) const { return Plan(Read(more)); }
  std::string ErrorOf(const std::string& more) const {
    return MessageOf<ConfigError>([&] { Of(more); });
  }
};

TEST_F(StudyPlanTest, UnequalServersAreRefusedUnlessTheStudySaysWhy) {
  const std::string set = "set: {cluster.workers: 8}\n";
  const auto make = [&](const std::string& more) {
    return Plan(ReadStudy(Write(set + more, kFourServers)));
  };
  EXPECT_THAT(MessageOf<ConfigError>([&] { make(""); }),
              AllOf(HasSubstr("not on equal terms"), HasSubstr("strategy.servers: SSP 1, GSSP 4"),
                    Not(HasSubstr("all-reduce"))))
      << "a strategy without servers has none to compare";
  const StudyPlan plan = make("why: {strategy.servers: as published}\n");
  ASSERT_EQ(plan.unequal_terms().size(), 1u);
  EXPECT_EQ(plan.unequal_terms()[0].why, "as published");
  EXPECT_THAT(MessageOf<ConfigError>([&] { make("why: {strategy.servers: x, batch: y}\n"); }),
              HasSubstr("'batch' is equal for all methods"));
}

TEST_F(StudyPlanTest, SamplesLinksAndSolversAreTermsToo) {
  const std::string file =
      Write("",
            "  A: {batch: 32, solver.momentum: 0}\n"
            "  B: {cluster.network.bandwidth_gbit_s: 1, compress.name: bf16}\n");
  EXPECT_THAT(
      MessageOf<ConfigError>([&] { Plan(ReadStudy(file)); }),
      AllOf(HasSubstr("batch: A 32, B 64"), HasSubstr("solver.momentum: A 0, B 0.9"),
            HasSubstr("cluster.network.bandwidth_gbit_s: A 10, B 1"), Not(HasSubstr("compress"))));
}

TEST_F(StudyPlanTest, ErrorsOfAConfigNameTheStudysLine) {
  EXPECT_THAT(ErrorOf("set: {solver.momentom: 0}\n"),
              AllOf(HasSubstr("two.yaml:6:7"), HasSubstr("momentom")));
  EXPECT_THAT(ErrorOf("tune: {keys: {solver.lr: [0.1, -1]}}\n"),
              AllOf(HasSubstr("two.yaml:6:15"), HasSubstr("solver.lr")));
}

TEST_F(StudyPlanTest, RunsAreOrderedBySeedSoThatAllMethodsHaveOneFirst) {
  const StudyPlan plan = Of("seeds: [1, 2]\ncases: {c: {batch: 32}, d: {batch: 64}}\n");
  EXPECT_TRUE(plan.tuning_runs().empty());
  std::vector<std::string> names;
  for (const StudyRun& run : plan.ResultRuns(StudyRecords(folder_.path() / "none"))) {
    names.push_back(run.job.name);
  }
  EXPECT_THAT(names, ElementsAre("c: A, seed 1", "c: B, seed 1", "d: A, seed 1", "d: B, seed 1",
                                 "c: A, seed 2", "c: B, seed 2", "d: A, seed 2", "d: B, seed 2"));
}

TEST_F(StudyPlanTest, ArgumentsSayHowItRuns) {
  const StudyRecords none(folder_.path() / "none");
  const auto of = [&](const std::string& more, const std::string& device) {
    return StudyPlan(Read(more), "out", device).ResultRuns(none)[0].job.arguments;
  };
  const auto simulated = of("seeds: [7]\n", "");
  EXPECT_EQ(simulated[0], "simulate");
  EXPECT_THAT(simulated, IsSupersetOf({"--numeric", "strategy.name=ps_ssp", "seed=7", "--resume"}));
  const auto trained = of("by: train\n", "cpu");
  EXPECT_EQ(trained[0], "train");
  EXPECT_THAT(trained,
              AllOf(IsSupersetOf({"--device", "cpu", "--resume"}), Not(Contains("--numeric"))));
  std::ofstream(folder_.path() / "p.json") << "{}";
  const auto sizes = of("profile: p.json\n", "");
  EXPECT_THAT(sizes,
              AllOf(Contains("--profile"), Not(Contains("--numeric")), Not(Contains("--resume"))));
}

TEST_F(StudyPlanTest, TheIdIsOfWhatARunDoesAndNotOfWhere) {
  const StudyRecords none(folder_.path() / "none");
  const auto id = [&](const std::string& more, const std::string& device = "") {
    return StudyPlan(Read(more), "out", device).ResultRuns(none)[0].id;
  };
  const std::string usual = id("");
  EXPECT_EQ(id("set: {threads: 1, device: cpu}\n"), usual);
  EXPECT_EQ(id("", "cpu"), usual);
  EXPECT_EQ(id("title: another\nseeds: [1]\n"), usual);
  EXPECT_NE(id("set: {solver.lr: 0.5}\n"), usual);
  EXPECT_NE(id("seeds: [2]\n"), usual);
  EXPECT_NE(id("by: train\n"), usual);
}

TEST_F(StudyPlanTest, ResultsTakeTheValuesThatTuningFoundBest) {
  const StudyPlan plan =
      Of("tune: {keys: {solver.lr: [0.1, 0.2, 0.3]}, seeds: [8, 9], epochs: 2}\nseeds: [1]\n");
  ASSERT_EQ(plan.tuning_runs().size(), 12u);
  for (const StudyRun& run : plan.tuning_runs()) {
    EXPECT_THAT(run.job.arguments, IsSupersetOf({"epochs=2", "data.validation=0.1"}));
    EXPECT_EQ(run.job.work, 0.25) << "of eight epochs";
  }
  StudyRecords records(folder_.path() / "jobs.jsonl");
  EXPECT_TRUE(plan.ResultRuns(records).empty());
  for (const StudyRun& run : plan.tuning_runs()) {
    const std::string lr = run.tuned[0].value;
    // A: 0.2 is best on the mean of both seeds.  B: 0.1 diverges with one seed, 0.2 and 0.3 are equal.
    double accuracy = run.method == 0 ? (lr == "0.2" ? 0.8 : run.seed == 8 ? 0.9 : 0.5) : 0.6;
    JobRecord record = Record(run, {0.99, accuracy});
    if (run.method == 1 && lr == "0.1" && run.seed == 9) record.exit_code = 5;
    EXPECT_FALSE(plan.TunedOf(0, run.method, records));
    records.Add(record);
  }
  const auto results = plan.ResultRuns(records);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_THAT(TextsOf(results[0].tuned), ElementsAre("solver.lr=0.2"));
  EXPECT_THAT(TextsOf(results[1].tuned), ElementsAre("solver.lr=0.2"));
  EXPECT_THAT(results[0].job.arguments, AllOf(Contains("solver.lr=0.2"), Not(Contains("epochs=2")),
                                              Not(Contains("data.validation=0.1"))));
}

// Every study that comes with dtrain is on equal terms or says why not, and its configs are right.
TEST(ShippedStudies, AreSound) {
  size_t studies = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(DTRAIN_SOURCE_DIR "/configs/studies")) {
    if (entry.path().extension() != ".yaml") continue;
    const Study study = ReadStudy(entry.path().string());
    EXPECT_GT(StudyPlan(study, "out", "").results(), 0u);
    EXPECT_FALSE(study.claims.empty()) << study.name;
    ++studies;
  }
  EXPECT_GE(studies, 20u);
}

TEST_F(StudyPlanTest, AllTuningRunsDivergedIsNoReasonToStop) {
  const StudyPlan plan = Of("tune: {keys: {solver.lr: [0.1, 0.2]}, seeds: [8]}\n");
  StudyRecords records(folder_.path() / "jobs.jsonl");
  for (const StudyRun& run : plan.tuning_runs()) {
    JobRecord record = Record(run, {0.1});
    record.exit_code = 5;
    records.Add(record);
  }
  EXPECT_THAT(TextsOf(*plan.TunedOf(0, 0, records)), ElementsAre("solver.lr=0.1"));
}

}  // namespace
}  // namespace dtrain
