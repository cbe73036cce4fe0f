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
