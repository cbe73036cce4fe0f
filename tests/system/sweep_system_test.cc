// Tests `dtrain sweep`: its runs, its table, and how an interrupted one continues.
#include <gmock/gmock.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/system/system_fixture.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSweep[] =
    "sweep --config $CONFIGS/quickstart.yaml --set data.train_samples=400 "
    "--set data.test_samples=200 --set epochs=1 --set threads=1 ";

class SweepSystemTest : public SystemTest {
 protected:
  // Starts a sweep in a session of its own, so that a signal does not reach its parents.
  pid_t Start(const std::string& arguments) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setsid();
      const std::string command = "export CONFIGS=" DTRAIN_SOURCE_DIR "/configs/runs; cd '" +
                                  folder_.string() + "'; exec " DTRAIN_BINARY_DIR "/dtrain " +
                                  arguments + " >out 2>err";
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    return child;
  }
  bool Eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < 3000 && !condition(); ++i) ::usleep(20'000);
    return condition();
  }
};

TEST_F(SweepSystemTest, TwoSeedsAtATimeEndInOneRowAndAreNotRunAgain) {
  const std::string sweep =
      std::string(kSweep) + "--set seed=1,2 --set cluster.slowdown=[1] --jobs 2 --output s ";
  const Outcome first = Run(sweep + "--json");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.err, AllOf(HasSubstr("[1/2] s/seed=1"), HasSubstr("[2/2] s/seed=2"),
                               HasSubstr("s/seed=2 completed in ")));
  const auto json = nlohmann::json::parse(first.out);
  ASSERT_EQ(json["rows"].size(), 1u);
  const auto& row = json["rows"][0];
  EXPECT_EQ(row["run"], "all");
  EXPECT_EQ(row["runs"], 2);
  EXPECT_EQ(row["settings"]["epochs"], "1");
  EXPECT_EQ(row["settings"]["cluster.slowdown"], "[1]") << "one value";
  double sum = 0;
  for (const char* run : {"seed=1", "seed=2"}) {
    const auto summary = nlohmann::json::parse(Slurp(folder_ / "s" / run / "summary.json"));
    sum += summary["test"]["accuracy"].get<double>();
    EXPECT_THAT(Slurp(folder_ / "s" / run / "log.txt"), HasSubstr("completed after 1.0 epochs"));
  }
  EXPECT_NEAR(row["accuracy_percent"]["mean"], 100 * sum / 2, 1e-9);
  EXPECT_GT(row["accuracy_percent"]["deviation"], 0);
  EXPECT_TRUE(json["failed"].empty());
  const std::string lines = Slurp(folder_ / "s" / "sweep.jsonl");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3) << "two runs and a row";

  const auto written = fs::last_write_time(folder_ / "s" / "seed=1" / "summary.json");
  const Outcome again = Run(sweep);
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.err, AllOf(HasSubstr("2 of 2 runs are done already"), Not(HasSubstr("[1/2]"))));
  EXPECT_THAT(again.out,
              AllOf(ContainsRegex("run +accuracy %"), HasSubstr("all "), HasSubstr("results s\n")));
  EXPECT_EQ(fs::last_write_time(folder_ / "s" / "seed=1" / "summary.json"), written);
  // Only the additional seed is run.
  const Outcome more = Run(sweep.substr(0, sweep.find("--set seed")) +
                           "--set seed=1,2,3 --set cluster.slowdown=[1] --output s");
  EXPECT_THAT(more.err, AllOf(HasSubstr("2 of 3 runs are done already"), HasSubstr("[3/3]")));
  // The same folder with another config is refused.
  const Outcome other = Run(std::string(kSweep) + "--set seed=1,2 --set batch=32 --output s");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("s/seed=1 holds a run of another config"));
}

TEST_F(SweepSystemTest, AComparisonNamesTheSameQuantitiesAlike) {
  const Outcome compared =
      Run("simulate --config $CONFIGS/quickstart.yaml --set data.train_samples=400 "
          "--set data.test_samples=200 --set epochs=1 --set threads=1 --set cluster.workers=2 "
          "--set stop.target=0.05 --cluster tianhe2 --compare ps_asp --json");
  ASSERT_EQ(compared.code, 0) << compared.err;
  const Outcome swept = Run(std::string(kSweep) +
                            "--set strategy=ps_asp --set cluster.workers=2 --set stop.target=0.05 "
                            "--set seed=1,2 --simulate --cluster tianhe2 --json --output s");
  ASSERT_EQ(swept.code, 0) << swept.err;
  const auto one = nlohmann::json::parse(compared.out)[0];
  const auto row = nlohmann::json::parse(swept.out)["rows"][0];
  for (const char* column :
       {"accuracy_percent", "seconds", "target_seconds", "staleness_mean", "mbytes_sent"}) {
    EXPECT_TRUE(one.contains(column)) << column;
    EXPECT_TRUE(row.contains(column)) << column;
  }
  EXPECT_EQ(one["test_accuracy_percent"], one["accuracy_percent"]) << "older scripts read it";
}

TEST_F(SweepSystemTest, RowsAreOfTheSettingsOtherThanTheSeed) {
  const Outcome outcome =
      Run(std::string(kSweep) +
          "--set stop.target=0.05,1 --set seed=1,2 --simulate --cluster tianhe2 --json "
          "--set strategy=ps_asp --set cluster.workers=2 --output s");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto rows = nlohmann::json::parse(outcome.out)["rows"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["run"], "stop.target=0.05");
  EXPECT_EQ(rows[0]["runs"], 2);
  EXPECT_GT(rows[0]["target_seconds"]["mean"], 0);
  EXPECT_FALSE(rows[1].contains("target_seconds")) << "no run is right about all";
  for (const char* column : {"staleness_mean", "mbytes_sent", "samples_per_second", "loss"}) {
    EXPECT_TRUE(rows[1].contains(column)) << column;
  }
  const std::string run = "s/stop.target=1,seed=2";
  EXPECT_THAT(Slurp(folder_ / run / "summary.json"), HasSubstr("\"compute\": \"numeric\""));
  EXPECT_THAT(Slurp(folder_ / run / "metrics.jsonl"), HasSubstr("\"training_seconds\""));
  EXPECT_THAT(Slurp(folder_ / run / "log.txt"), HasSubstr("did not reach the target accuracy"));
}

TEST_F(SweepSystemTest, ARunThatFailsIsNamedAndTheOthersGoOn) {
  const Outcome outcome =
      Run(std::string(kSweep) + "--set solver.lr=1e30,0.02 --jobs 2 --output s");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("s/solver.lr=1e30 ended with exit code 5"));
  // The run's own words are there too, not only its log's name.
  EXPECT_TRUE(std::regex_search(outcome.err,
                                std::regex("exit code 5 after .*: .*(loss|finite|nan).*; see ")));
  EXPECT_THAT(Slurp(folder_ / "s" / "sweep.jsonl"),
              AllOf(HasSubstr("\"exit_code\":5,\"status\":\"failed\""),
                    HasSubstr("\"exit_code\":0,\"status\":\"completed\"")));
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("solver.lr=0.02 "),
                                 HasSubstr("failed: s/solver.lr=1e30 (exit code 5)\n")));
  EXPECT_TRUE(fs::exists(folder_ / "s" / "solver.lr=0.02" / "summary.json"));
}

TEST_F(SweepSystemTest, ErrorsAreReportedBeforeAnythingStarts) {
  const Outcome config = Run(std::string(kSweep) + "--set batch=32,0 --output s");
  EXPECT_EQ(config.code, 2);
  EXPECT_THAT(config.err, HasSubstr("--set batch=0: batch must be >= 1"));
  EXPECT_FALSE(fs::exists(folder_ / "s"));
  const Outcome output = Run(std::string(kSweep) + "--set output=a,b");
  EXPECT_EQ(output.code, 2);
  EXPECT_THAT(output.err, HasSubstr("each run of a sweep has an output folder of its own"));
}

// The ranks that a run starts also get the cluster, and agree on their config.
TEST_F(SweepSystemTest, RanksOfARunHaveItsCluster) {
  const Outcome outcome = Run(std::string(kSmall) + "--cluster tianhe2 --workers 2 --output run " +
                              "--set max_steps=2");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(Slurp(folder_ / "run" / "config.yaml"),
              AllOf(HasSubstr("  workers: 2\n"), HasSubstr("  per_node: 4\n")));
}

// After Ctrl-C the running run writes a checkpoint, and the same command continues to the same bits.
TEST_F(SweepSystemTest, AStoppedSweepGoesOn) {
  const std::string keys = "--set seed=1,2 --set epochs=60 --set cluster.step_seconds=0.02 ";
  std::string sweep = std::string(kSweep) + keys + "--output s";
  sweep.erase(sweep.find("--set epochs=1 "), 15);
  const pid_t child = Start(sweep);
  const fs::path first = folder_ / "s" / "seed=1";
  EXPECT_TRUE(Eventually([&] { return fs::exists(first / "checkpoints" / "latest"); }));
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 75);
  EXPECT_THAT(Slurp(folder_ / "err"),
              AllOf(HasSubstr("s/seed=1 stopped after"), HasSubstr("the same command resumes it"),
                    Not(HasSubstr("[2/2]"))));
  EXPECT_THAT(Slurp(first / "summary.json"), HasSubstr("\"exit_code\": 75"));
  EXPECT_THAT(Slurp(folder_ / "s" / "sweep.jsonl"),
              AllOf(HasSubstr("\"exit_code\":75,\"status\":\"stopped\""),
                    HasSubstr("\"folder\":\"s/seed=2\",\"status\":\"not ended\"")));
  EXPECT_EQ(Slurp(folder_ / "out"), "");
  const Outcome rest = Run(sweep + " --jobs 2");
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_THAT(Slurp(first / "log.txt"), HasSubstr("resumed after step"));
  EXPECT_THAT(rest.out, HasSubstr("all "));
}

}  // namespace
}  // namespace dtrain
