// Tests gradients.jsonl, the records of a run's gradients that a config requests, in real and simulated runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "framework/core/file.h"
#include "framework/simulate/simulated_run.h"
#include "tests/runtime/run_fixture.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GradientsFileTest : public RunFixture {
 protected:
  RunConfig Config(const std::string& output, const std::vector<std::string>& more) {
    return OnDigits(output, {"data.test_samples=100", "epochs=2", "threads=1", "gradients.every=3"},
                    more);
  }
  std::filesystem::path FileOf(const std::string& output) const {
    return folder_ / output / "gradients.jsonl";
  }
  std::vector<nlohmann::json> RecordsOf(const std::string& output) const {
    std::vector<nlohmann::json> records;
    std::ifstream in(FileOf(output));
    for (std::string line; std::getline(in, line);) records.push_back(nlohmann::json::parse(line));
    return records;
  }
  std::vector<int> StepsOf(const std::string& output) const {
    std::vector<int> steps;
    for (const nlohmann::json& record : RecordsOf(output)) steps.push_back(record["step"]);
    return steps;
  }
  void Simulate(const RunConfig& config, const std::string& output) {
    std::filesystem::create_directories(folder_ / output);
    SimulatedRun simulated(config, std::nullopt, true);
    simulated.StudyGradients(folder_ / output);
    simulated.Run();
  }
};

int64_t CountIn(const nlohmann::json& histogram) {
  int64_t count = histogram["zeros"];
  for (const char* sign : {"negative", "positive"}) {
    for (const int64_t bin : histogram[sign]) count += bin;
  }
  return count;
}

TEST_F(GradientsFileTest, TellsWhatASelectionLeaves) {
  Run(Config("run", {"compress={name: topk, density: 0.02}", "cluster.workers=2"}));
  const std::vector<nlohmann::json> records = RecordsOf("run");
  ASSERT_THAT(StepsOf("run"), ElementsAre(3, 6, 9, 12));
  for (const nlohmann::json& record : records) {
    const int64_t d = record["end"].get<int64_t>() - record["begin"].get<int64_t>();
    EXPECT_EQ(d, 61706);
    EXPECT_EQ(CountIn(record["gradient"]), d);
    EXPECT_EQ(CountIn(record["from"]), d);
    EXPECT_EQ(record["worker"], 0);
    EXPECT_EQ(record["asked"], 1234);
    EXPECT_EQ(record["selected"], 1234);
    EXPECT_NEAR(record["error"], record["error_of_largest"], 1e-12);
    const double bound = 1 - 1234.0 / 61706.0;
    EXPECT_DOUBLE_EQ(record["bound"], bound);
    EXPECT_DOUBLE_EQ(record["bound_squared"], bound * bound);
    EXPECT_LT(record["error"], bound * bound);
    EXPECT_GT(record["error"], 0);
  }
  // The residual is in u and not in g.
  EXPECT_GT(records[3]["from"]["squares"], records[3]["gradient"]["squares"]);
}

TEST_F(GradientsFileTest, WithoutACompressorItIsOfTheGradientAlone) {
  Run(Config("run", {"strategy={name: wfbp}", "cluster.workers=2"}));
  const std::vector<nlohmann::json> records = RecordsOf("run");
  ASSERT_THAT(StepsOf("run"), ElementsAre(3, 6, 9, 12));
  EXPECT_FALSE(records[0].contains("from"));
  EXPECT_FALSE(records[0].contains("error"));
  EXPECT_EQ(CountIn(records[0]["gradient"]), 61706);
}

TEST_F(GradientsFileTest, IsNotThereWhereNobodyAsksForIt) {
  Run(Config("run", {"gradients.every=0"}));
  EXPECT_FALSE(std::filesystem::exists(FileOf("run")));
}

TEST_F(GradientsFileTest, ChangesNoBitOfTheRun) {
  const std::vector<std::string> keys = {"compress={name: gaussiank, density: 0.02}"};
  std::vector<std::string> off = keys;
  off.emplace_back("gradients.every=0");
  EXPECT_EQ(Run(Config("on", keys)).summary.weights_sha256,
            Run(Config("off", off)).summary.weights_sha256);
}

class GradientsFileOfTest : public GradientsFileTest,
                            public testing::WithParamInterface<std::vector<std::string>> {};

TEST_P(GradientsFileOfTest, IsTheSameInVirtualTime) {
  const RunConfig config = Config("real", GetParam());
  Run(config);
  Simulate(config, "simulated");
  EXPECT_EQ(ReadFile(FileOf("simulated")), ReadFile(FileOf("real")));
  EXPECT_FALSE(RecordsOf("real").empty());
}

// A killed run has written records of steps that are repeated, and half a line.
TEST_P(GradientsFileOfTest, IsTheSameBehindAResume) {
  Run(Config("whole", GetParam()));
  std::vector<std::string> part = GetParam();
  part.emplace_back("max_steps=7");
  Run(Config("part", part));
  const std::string later = RecordsOf("whole").back().dump();
  std::ofstream(FileOf("part"), std::ios::app) << later << "\n" << later.substr(0, 40);
  Run(Config("part", GetParam()), {.resume = "auto", .weights = ""});
  EXPECT_EQ(ReadFile(FileOf("part")), ReadFile(FileOf("whole")));
}

INSTANTIATE_TEST_SUITE_P(
    Runs, GradientsFileOfTest,
    testing::Values(std::vector<std::string>{"cluster.workers=2", "strategy={name: wfbp}",
                                             "compress={name: topk, density: 0.02}"},
                    std::vector<std::string>{"cluster.workers=3"},
                    std::vector<std::string>{"strategy={name: ps_asp, placement: colocated}",
                                             "compress={name: dgc, density: 0.05, scope: layer}"}));

// A worker counts its own steps, not those of the run.
TEST_F(GradientsFileTest, ASimulationThatGoesOnDoublesNothing) {
  const std::vector<std::string> keys = {"cluster.workers=3", "strategy.name=ps_asp",
                                         "cluster.slowdown=[1, 3, 3]",
                                         "compress={name: topk, density: 0.02}"};
  const auto simulate = [&](const std::string& output, const std::string& resume, int steps) {
    std::vector<std::string> more = keys;
    more.push_back("max_steps=" + std::to_string(steps));
    const RunConfig config = Config(output, more);
    std::filesystem::create_directories(folder_ / output);
    SimulatedRun run(config, std::nullopt, true);
    run.StudyGradients(folder_ / output);
    run.KeepCheckpoints(folder_ / output, resume);
    run.Run();
  };
  simulate("whole", "none", 14);
  simulate("part", "none", 7);
  EXPECT_GT(StepsOf("part").back(), 7);
  simulate("part", "auto", 14);
  const std::vector<int> steps = StepsOf("part");
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end(), std::less_equal<>()));
  EXPECT_EQ(steps, StepsOf("whole"));
}

TEST_F(GradientsFileTest, SizesAloneHaveNoGradients) {
  const RunConfig config = Config("run", {});
  SimulatedRun ghost(config, std::nullopt, false);
  EXPECT_THAT(MessageOf([&] { ghost.StudyGradients(folder_); }),
              AllOf(HasSubstr("2: "), HasSubstr("has no gradients to study (gradients.every)")));
  SimulatedRun numeric(config, std::nullopt, true);
  EXPECT_THAT(MessageOf([&] { numeric.StudyGradients(""); }), HasSubstr("give --output DIR"));
  const RunConfig off = Config("run", {"gradients.every=0"});
  SimulatedRun ghost_without(off, std::nullopt, false);
  EXPECT_EQ(MessageOf([&] { ghost_without.StudyGradients(""); }), "no error");
}

}  // namespace
}  // namespace dtrain
