#include "framework/report/rank_report.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "framework/results/rank_times.h"
#include "tests/report/report_folder.h"

namespace dtrain {
namespace {

using nlohmann::ordered_json;
using testing::ElementsAre;

class RankReport : public ReportFolder {
 protected:
  std::filesystem::path file() const { return folder_ / "ranks.jsonl"; }
  ordered_json Describe(int64_t damaged = 0) const {
    ordered_json report;
    EXPECT_EQ(DescribeRanks(file(), report), damaged);
    return report;
  }
  // Writes `steps` equal steps of each worker up to a boundary.  Worker w takes w + 1 times as long
  // per step as worker 0.
  void WriteBoundary(RankTimesWriter& writer, int64_t step, int workers, int steps) {
    for (int rank = 0; rank < workers; ++rank) {
      StepWindows windows;
      for (int i = 1; i <= steps; ++i) windows.Add(0.1 * i, 0.01 * (rank + 1), 0.002);
      writer.Write(step, {.rank = rank,
                          .role = fmt::format("worker {}", rank),
                          .node = "cn1",
                          .windows = windows.Take(),
                          .traffic = {.bytes_sent = 1000, .bytes_received = 900, .messages = 4},
                          .staleness = {3, 1}});
    }
  }
};

TEST_F(RankReport, NothingWithoutTheFile) { EXPECT_TRUE(Describe().is_null()); }

TEST_F(RankReport, AddsUpTheRests) {
  {
    RankTimesWriter writer(file(), std::nullopt, 0);
    WriteBoundary(writer, 10, 2, 10);
    WriteBoundary(writer, 20, 2, 10);
  }
  const ordered_json report = Describe();
  ASSERT_EQ(report["ranks"].size(), 2U);
  const ordered_json& second = report["ranks"][1];
  EXPECT_EQ(second["role"], "worker 1");
  EXPECT_EQ(second["own_steps"], 20);
  EXPECT_DOUBLE_EQ(second["compute_seconds"], 20 * 0.02);
  EXPECT_DOUBLE_EQ(second["wait_seconds"], 20 * 0.002);
  EXPECT_DOUBLE_EQ(second["longest_seconds"], 0.022);
  EXPECT_EQ(second["bytes_sent"], 2000);
  EXPECT_EQ(second["times"]["compute_ms"].size(), 20U);
  EXPECT_DOUBLE_EQ(second["times"]["compute_ms"][7], 20);
  EXPECT_THAT(report["staleness"], ElementsAre(12, 4));
  EXPECT_THAT(report["traffic"]["sent"], ElementsAre(0, 2000, 4000));
}

// A server has no steps; a worker may have made one.
TEST_F(RankReport, HasTheTimesAndTheTrafficOfEveryRank) {
  std::ofstream(file())
      << R"({"step":10,"rank":0,"role":"worker 0","node":"a","seconds":[1,2],"own_steps":[1,3],)"
         R"("compute_seconds":[0.5,3],"wait_seconds":[0.25,0.75],"longest_seconds":[0.75,2],)"
         R"("bytes_sent":100,"bytes_received":30,"messages":2,"staleness":[1,2]})"
         "\n"
         R"({"step":10,"rank":1,"role":"worker 1","node":"b","seconds":[4],"own_steps":[1],)"
         R"("compute_seconds":[3.5],"wait_seconds":[0.5],"longest_seconds":[4],"messages":1})"
         "\n"
         R"({"step":10,"rank":2,"role":"server 0","bytes_sent":7,"bytes_received":5,"messages":4})"
         "\n"
         R"({"step":20,"rank":0,"role":"worker 0","node":"a","seconds":[5],"own_steps":[2],)"
         R"("compute_seconds":[1],"wait_seconds":[0.5],"longest_seconds":[1],)"
         R"("bytes_sent":50,"bytes_received":20,"messages":3,"staleness":[0,0,4]})"
         "\n";
  const ordered_json report = Describe();
  ASSERT_EQ(report["ranks"].size(), 3U);
  const ordered_json& first = report["ranks"][0];
  EXPECT_EQ(first["node"], "a");
  EXPECT_EQ(first["own_steps"], 6);
  EXPECT_EQ(first["compute_seconds"], 4.5);
  EXPECT_EQ(first["wait_seconds"], 1.5);
  EXPECT_EQ(first["longest_seconds"], 2);
  EXPECT_EQ(first["bytes_sent"], 150);
  EXPECT_EQ(first["bytes_received"], 50);
  EXPECT_EQ(first["messages"], 5);
  EXPECT_THAT(first["times"]["seconds"], ElementsAre(1, 2, 5));
  EXPECT_THAT(first["times"]["compute_ms"], ElementsAre(500, 1000, 500));
  EXPECT_THAT(first["times"]["wait_ms"], ElementsAre(250, 250, 250));
  EXPECT_THAT(first["times"]["longest_ms"], ElementsAre(750, 2000, 1000));
  EXPECT_THAT(report["ranks"][1]["times"]["compute_ms"], ElementsAre(3500));
  EXPECT_EQ(report["ranks"][2]["role"], "server 0");
  EXPECT_FALSE(report["ranks"][2].contains("times"));
  EXPECT_THAT(report["traffic"]["seconds"], ElementsAre(0, 4, 5));
  EXPECT_THAT(report["traffic"]["sent"], ElementsAre(0, 107, 157));
  EXPECT_THAT(report["traffic"]["received"], ElementsAre(0, 35, 55));
  EXPECT_THAT(report["staleness"], ElementsAre(1, 2, 4));
}

TEST_F(RankReport, ServersAloneHaveNoCurves) {
  std::ofstream(file()) << R"({"step":10,"rank":0,"role":"server 0","bytes_sent":7})"
                        << "\n";
  const ordered_json report = Describe();
  EXPECT_EQ(report["ranks"][0]["bytes_sent"], 7);
  EXPECT_FALSE(report["ranks"][0].contains("times"));
  EXPECT_FALSE(report.contains("staleness"));
}

// A curve has at most 300 points.  A mean counts the steps of each joined window.
TEST_F(RankReport, TheWindowsOfALongRunAreJoined) {
  ordered_json line = {{"step", 601}, {"rank", 0}};
  for (int i = 1; i <= 601; ++i) {
    line["seconds"].push_back(i);
    line["own_steps"].push_back(i % 3 == 0 ? 2 : 1);
    line["compute_seconds"].push_back(i % 3 == 0 ? 4 : 0.5);
    line["wait_seconds"].push_back(i % 3 == 1 ? 1 : 0);
    line["longest_seconds"].push_back(i);
  }
  std::ofstream(file()) << line.dump() << "\n";
  const ordered_json report = Describe();
  const ordered_json& times = report["ranks"][0]["times"];
  ASSERT_EQ(times["seconds"].size(), 201U);  // three windows a point
  EXPECT_EQ(times["seconds"][0], 3);
  EXPECT_EQ(times["compute_ms"][0], 1250);
  EXPECT_EQ(times["wait_ms"][0], 250);
  EXPECT_EQ(times["longest_ms"][0], 3000);
  EXPECT_EQ(times["seconds"][200], 601);
  EXPECT_EQ(times["compute_ms"][200], 500);
  EXPECT_EQ(times["wait_ms"][200], 1000);
}

TEST_F(RankReport, OfManyWorkersTheSlowestAndTheFastestHaveCurves) {
  {
    RankTimesWriter writer(file(), std::nullopt, 0);
    WriteBoundary(writer, 10, 100, 4);
  }
  const ordered_json report = Describe();
  ASSERT_EQ(report["ranks"].size(), 100U);
  for (int rank = 0; rank < 100; ++rank) {
    EXPECT_EQ(report["ranks"][rank].contains("times"), rank < 16 || rank >= 84) << rank;
  }
}

TEST_F(RankReport, DamagedLinesAreCounted) {
  {
    RankTimesWriter writer(file(), std::nullopt, 0);
    WriteBoundary(writer, 10, 1, 4);
  }
  std::ofstream(file(), std::ios::app)
      << "{\"step\": 1, \"rank\"\n[]\n"
         "{\"step\":\"x\",\"rank\":{}}\n"
         "{\"step\":20,\"rank\":0,\"seconds\":[1,null],\"steps\":7}\n"
         "{\"half";
  const ordered_json report = Describe(2);
  EXPECT_EQ(report["ranks"][0]["own_steps"], 4);
}

}  // namespace
}  // namespace dtrain
