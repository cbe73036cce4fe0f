// Tests a run's files, and the page and the table made from them.
#include <nlohmann/json.hpp>

#include "tests/system/system_fixture.h"

namespace dtrain {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRun[] =
    "train --config $CONFIGS/quickstart.yaml --set data.train_samples=640 "
    "--set data.test_samples=200 --set epochs=2 --workers 2 ";

class ReportSystemTest : public SystemTest {
 protected:
  json DataOf(const std::string& file) const {
    const std::string page = Slurp(folder_ / file);
    const std::string begin = R"(<script type="application/json" id="data">)";
    const size_t at = page.find(begin) + begin.size();
    return json::parse(page.substr(at, page.find("</script", at) - at));
  }
  json SummaryOf(const std::string& run) const {
    return json::parse(Slurp(folder_ / run / "summary.json"));
  }
  size_t EventFiles(const std::string& run) const {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_ / run / "tensorboard")) {
      count += entry.path().filename().string().starts_with("events.out.tfevents.") ? 1 : 0;
    }
    return count;
  }
};

// The steps, times, bytes and staleness that ranks reported at boundaries equal those of the summary.
TEST_F(ReportSystemTest, ThePageSaysWhatTheSummarySays) {
  const Outcome run = Run(std::string(kRun) +
                          "--output run --set timeline=true --set strategy.name=ps_ssp "
                          "--set \"cluster.slowdown=[1,3]\" --set cluster.step_seconds=0.01");
  ASSERT_EQ(run.code, 0) << run.err;
  const Outcome report = Run("report run");
  ASSERT_EQ(report.code, 0) << report.err;
  EXPECT_EQ(report.out, "run/report.html\n");
  const json data = DataOf("run/report.html")["runs"][0];
  const json summary = SummaryOf("run");
  EXPECT_EQ(data["state"], "completed");
  EXPECT_EQ(data["summary"], summary);
  ASSERT_EQ(data["ranks"].size(), 3U);
  EXPECT_EQ(data["ranks"][2]["role"], "server 0");
  EXPECT_FALSE(data["ranks"][2].contains("times") && data["ranks"][2]["own_steps"] != 0);
  double sent = 0;
  for (const json& rank : data["ranks"]) sent += rank["bytes_sent"].get<double>();
  EXPECT_EQ(sent, summary["communication"]["bytes_sent"]);
  for (size_t worker = 0; worker < 2; ++worker) {
    const json& detail = summary["workers_detail"][worker];
    EXPECT_EQ(data["ranks"][worker]["own_steps"], detail["own_steps"]);
    EXPECT_NEAR(data["ranks"][worker]["compute_seconds"], detail["compute_seconds"], 1e-3);
  }
  EXPECT_EQ(data["staleness"], summary["staleness"]["histogram"]);
  EXPECT_EQ(data["timeline"]["ranks"].size(), 3U);
}

TEST_F(ReportSystemTest, TheBucketsOfTheirPlanAreOnTheTimeline) {
  ASSERT_EQ(
      Run(std::string(kRun) + "--output run --set timeline=true --set strategy.name=wfbp").code, 0);
  ASSERT_EQ(Run("report run --output page.html").code, 0);
  const json data = DataOf("page.html")["runs"][0];
  std::set<int> buckets;
  for (const json& lane : data["timeline"]["ranks"][0]["lanes"]) {
    if (lane["name"] != "buckets") continue;
    for (const json& span : lane["spans"]) buckets.insert(span[3].get<int>());
  }
  EXPECT_EQ(buckets.size(), data["plan"]["buckets"].size());
}

TEST_F(ReportSystemTest, ResumedRunsAreWholeAndNotTwice) {
  const std::string run = std::string(kRun) + "--set tensorboard=true ";
  ASSERT_EQ(Run(run + "--output run --set epochs=1").code, 0);
  EXPECT_EQ(EventFiles("run"), 1U);
  const Outcome resumed = Run(run + "--output run --set epochs=2 --resume auto");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(EventFiles("run"), 2U);
  ASSERT_EQ(Run("report run").code, 0);
  const json data = DataOf("run/report.html")["runs"][0];
  EXPECT_EQ(data["ranks"][0]["own_steps"], data["summary"]["step"]);
  const json& seconds = data["ranks"][0]["times"]["seconds"];
  for (size_t i = 1; i < seconds.size(); ++i) EXPECT_GE(seconds[i], seconds[i - 1]);
}

TEST_F(ReportSystemTest, SeveralRunsAndCsv) {
  const std::string name = "'<script>alert(1)<b>'";
  ASSERT_EQ(Run(std::string(kRun) + "--output " + name).code, 0);
  ASSERT_EQ(Run(std::string(kRun) + "--output b --set solver.lr=0.02").code, 0);
  const Outcome report = Run("report --json " + name + " b --output both.html");
  ASSERT_EQ(report.code, 0) << report.err;
  EXPECT_EQ(json::parse(report.out)["report"], "both.html");
  EXPECT_EQ(DataOf("both.html")["runs"].size(), 2U);
  EXPECT_THAT(Slurp(folder_ / "both.html"), Not(HasSubstr("<script>alert")));
  const Outcome csv = Run("report b --csv");
  EXPECT_EQ(csv.code, 0);
  EXPECT_THAT(csv.out, HasSubstr("b,evaluation,"));
  EXPECT_THAT(csv.out, HasSubstr(",accuracy,"));
  EXPECT_THAT(csv.out, HasSubstr("b,rank,,1,"));
}

TEST_F(ReportSystemTest, FollowEndsWithTheRun) {
  const Outcome both =
      Run(std::string("report run --follow"),
          "sh -c '" DTRAIN_BINARY_DIR
          "/dtrain train --config $CONFIGS/quickstart.yaml --output run --set "
          "data.train_samples=640 --set data.test_samples=200 --set epochs=2 "
          "--set cluster.step_seconds=0.1 2>train.err & pid=$!; "
          "while kill -0 $pid && ! [ -e run/metrics.jsonl ]; do sleep 0.1; done; exec \"$@\"' sh");
  ASSERT_EQ(both.code, 0) << both.err;
  EXPECT_THAT(both.err, HasSubstr("is written again"));
  EXPECT_EQ(DataOf("run/report.html")["runs"][0]["state"], "completed");
  EXPECT_THAT(Slurp(folder_ / "run/report.html"), Not(HasSubstr("http-equiv=\"refresh\"")));
}

TEST_F(ReportSystemTest, ErrorsAreNamed) {
  const Outcome none = Run("report nowhere");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("nowhere: no such folder"));
  fs::create_directories(folder_ / "empty");
  EXPECT_EQ(Run("report empty").code, 2);
  EXPECT_FALSE(fs::exists(folder_ / "empty/report.html"));
  EXPECT_EQ(Run("report empty --csv --follow").code, 2);
}

}  // namespace
}  // namespace dtrain
