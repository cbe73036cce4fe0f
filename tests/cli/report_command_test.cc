// Tests `dtrain report`: which runs its arguments select.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "tests/cli/command_outcome.h"
#include "tests/report/report_folder.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ReportCommand : public ReportFolder {
 protected:
  std::string At(const std::string& name) const { return (folder_ / name).string(); }
  void PutRun(const std::string& run) const {
    Put(run, "config.yaml", "batch: 64\n");
    Put(run, "summary.json", R"({"status": "completed", "seconds": 2})");
  }
  // Returns the names of the runs on the page, in order.
  std::vector<std::string> NamesOn(const std::string& page) const {
    const std::string text = ReadFile(folder_ / page);
    const std::string begin = R"(<script type="application/json" id="data">)";
    const size_t at = text.find(begin) + begin.size();
    const json page_data = json::parse(text.substr(at, text.find("</script", at) - at));
    std::vector<std::string> names;
    for (const json& run : page_data.at("runs")) names.push_back(run.at("name"));
    return names;
  }
};

TEST_F(ReportCommand, AFolderOfRunsStandsForAllOfThem) {
  PutRun("rates/solver.lr=0.1");
  PutRun("rates/solver.lr=0.01");
  Put("rates/solver.lr=9", "log.txt", "failed before it had a config\n");
  Put("rates", "sweep.jsonl", "{}\n");
  const CommandOutcome outcome = RunCommand({"report", At("rates")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, At("rates/report.html") + "\n");
  EXPECT_THAT(NamesOn("rates/report.html"), ElementsAre("solver.lr=0.01", "solver.lr=0.1"));
  const CommandOutcome csv = RunCommand({"report", "--csv", At("rates")});
  EXPECT_THAT(csv.out, AllOf(HasSubstr("solver.lr=0.01,summary"), HasSubstr("solver.lr=0.1,sum")));
}

TEST_F(ReportCommand, TheRunsOfSeedsAreInTheirOrder) {
  for (const char* run : {"mine/seed-10", "mine/seed-9", "alone"}) PutRun(run);
  ASSERT_EQ(RunCommand({"report", At("alone"), At("mine"), "--output", At("page.html")}).code, 0);
  EXPECT_THAT(NamesOn("page.html"), ElementsAre("alone", "seed-9", "seed-10"));
  EXPECT_EQ(IndentedJson(RunCommand({"report", At("alone"), "--json"}).out),
            (json{{"report", At("alone/report.html")}}));
}

TEST_F(ReportCommand, RunsOfOneNameGoByTheirPaths) {
  for (const char* run : {"a/seed-1", "b/seed-1", "b/seed-2"}) PutRun(run);
  ASSERT_EQ(RunCommand({"report", At("a"), At("b"), "--output", At("page.html")}).code, 0);
  EXPECT_THAT(NamesOn("page.html"), ElementsAre(At("a/seed-1"), At("b/seed-1"), "seed-2"));
}

// The shell expands runs/rates/* to these arguments.
TEST_F(ReportCommand, FilesBesideRunsArePassedOver) {
  PutRun("rates/seed=1");
  Put("rates", "sweep.jsonl", "{}\n");
  const CommandOutcome both = RunCommand({"report", At("rates/seed=1"), At("rates/sweep.jsonl")});
  ASSERT_EQ(both.code, 0) << both.err;
  EXPECT_EQ(both.out, At("rates/seed=1/report.html") + "\n");
  EXPECT_THAT(both.err, HasSubstr("sweep.jsonl is a file, no run, and is passed over"));
  const CommandOutcome alone = RunCommand({"report", At("rates/sweep.jsonl")});
  EXPECT_EQ(alone.code, 2);
  EXPECT_THAT(alone.err, Not(HasSubstr("passed over")));
}

TEST_F(ReportCommand, AFolderWithoutRunsIsRefused) {
  Put("empty/below", "log.txt", "");
  const CommandOutcome outcome = RunCommand({"report", At("empty")});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("no config.yaml, metrics.jsonl or summary.json"));
}

}  // namespace
}  // namespace dtrain
