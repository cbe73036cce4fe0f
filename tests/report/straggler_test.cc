// Tests when the report calls a worker a straggler.
#include "framework/report/straggler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "framework/report/run_report.h"
#include "framework/results/rank_times.h"
#include "tests/report/report_folder.h"

namespace dtrain {
namespace {

using nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Returns workers of one host whose steps compute these seconds.
ordered_json WorkersOf(const std::vector<double>& seconds, const std::string& cpus = "") {
  ordered_json workers;
  for (size_t rank = 0; rank < seconds.size(); ++rank) {
    ordered_json one = {{"rank", rank}, {"node", "cn1"}, {"own_steps", 10}};
    one["compute_seconds"] = 10 * seconds[rank];
    if (!cpus.empty()) one["cpus"] = cpus;
    workers.push_back(std::move(one));
  }
  return workers;
}

std::string WhyNone(const ordered_json& workers) {
  const ordered_json straggler = StragglerOf(workers);
  return straggler.is_object() ? straggler.value("none", "") : "null";
}

TEST(Straggler, IsOneOfFourThatIsClearlySlower) {
  const ordered_json straggler = StragglerOf(WorkersOf({1, 1, 4, 1}));
  EXPECT_EQ(straggler["rank"], 2);
  EXPECT_DOUBLE_EQ(straggler["factor"].get<double>(), 4);
  EXPECT_DOUBLE_EQ(straggler["median_seconds"].get<double>(), 1);
  EXPECT_EQ(StragglerOf(WorkersOf({1, 2, 3, 1, 1, 1, 1, 1}))["rank"], 2) << "the slowest of two";
  EXPECT_THAT(WhyNone(WorkersOf({1, 1.2, 1, 1})), HasSubstr("no worker's step takes 25 % longer"));
}

TEST(Straggler, IsNoneWhereMoreThanAQuarterIsSlow) {
  EXPECT_THAT(WhyNone(WorkersOf({1, 1, 2.1, 2, 2, 1, 1, 1})),
              HasSubstr("3 of 8 workers take 25 %"));
  EXPECT_THAT(WhyNone(WorkersOf({1, 4, 1})),
              HasSubstr("1 of 3 workers take 25 % longer than the median, and stragglers are at "
                        "most a quarter, so of four"));
  // The median of two equal halves lies between them.
  EXPECT_THAT(WhyNone(WorkersOf({1, 2, 2, 1})),
              HasSubstr("No worker is called a straggler: the steps of 2 of 4 workers"));
  EXPECT_EQ(WhyNone(WorkersOf({1})), "null");
  EXPECT_EQ(WhyNone(nullptr), "null");
}

TEST(Straggler, IsNoneWhereWorkersTakeTurnsOnCores) {
  EXPECT_THAT(WhyNone(WorkersOf({1, 1, 4, 1}, "0-1")),
              HasSubstr("on cn1 4 ranks take turns on 2 cores"));
  EXPECT_EQ(StragglerOf(WorkersOf({1, 1, 4, 1}, "0-3"))["rank"], 2);
  ordered_json bound = WorkersOf({1, 1, 4, 1});
  for (size_t rank = 0; rank < bound.size(); ++rank) bound[rank]["cpus"] = std::to_string(rank);
  EXPECT_EQ(StragglerOf(bound)["rank"], 2) << "each has a core of its own";
  ordered_json served = bound;  // two servers that share the worker's cores
  for (int rank : {4, 5}) served.push_back({{"rank", rank}, {"node", "cn1"}, {"cpus", "2"}});
  EXPECT_THAT(WhyNone(served), HasSubstr("on cn1 6 ranks take turns on 4 cores"));
  bound[3].erase("cpus");
  bound[0]["cpus"] = bound[1]["cpus"] = "2";
  EXPECT_EQ(StragglerOf(bound)["rank"], 2) << "the cores of one are not known";
}

TEST(Straggler, SkipsWhatIsNoWorker) {
  ordered_json workers = WorkersOf({1, 1, 4, 1});
  workers.push_back({{"rank", 4}, {"own_steps", 0}, {"compute_seconds", 0}});  // a server
  workers.push_back("text");
  workers.push_back({{"rank", "x"}, {"own_steps", 1}, {"compute_seconds", 99}});
  EXPECT_EQ(StragglerOf(workers)["rank"], 2);
}

TEST(Straggler, CpusAreWrittenAsLinuxDoes) {
  EXPECT_EQ(CpuListText({0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
  EXPECT_EQ(CpuListText({}), "");
  EXPECT_THAT(CpusOfList("0-3,8,10-11"), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  for (const char* text : {"", "x", "3-1", "0-99999", "-4"}) {
    EXPECT_THAT(CpusOfList(text), IsEmpty()) << text;
  }
}

using StragglerReport = ReportFolder;

TEST_F(StragglerReport, IsThatOfTheRanksElseOfTheSummary) {
  Put("simulated", "summary.json",
      ordered_json{{"status", "completed"}, {"workers_detail", WorkersOf({1, 1, 1, 3})}}.dump());
  EXPECT_EQ(ReportOf(folder_ / "simulated")["straggler"]["rank"], 3);
  Put("real", "summary.json", "{\"status\": \"completed\"}");
  {
    RankTimesWriter writer(folder_ / "real" / "ranks.jsonl", std::nullopt, 0);
    for (int rank = 0; rank < 4; ++rank) {
      writer.Write(10, {.rank = rank,
                        .role = "worker",
                        .node = "cn1",
                        .windows = {{1, 10, rank == 1 ? 4.0 : 1.0, 0.1, 0.5}},
                        .cpus = "0"});
    }
  }
  EXPECT_THAT(ReportOf(folder_ / "real")["straggler"]["none"].get<std::string>(),
              HasSubstr("on cn1 4 ranks take turns on 1 core."));
}

}  // namespace
}  // namespace dtrain
