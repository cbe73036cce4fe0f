#include "framework/results/rank_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/checkpoint/checkpoint_sample.h"

namespace dtrain {
namespace {

using testing::ElementsAre;

TEST(StepWindows, FewStepsAreKeptOneByOne) {
  StepWindows windows;
  windows.Add(1, 0.25, 0.5);
  windows.Add(2, 0.5, 0.125);
  const std::vector<StepWindow> taken = windows.Take();
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[1].at_seconds, 2);
  EXPECT_EQ(taken[1].compute_seconds, 0.5);
  EXPECT_EQ(taken[1].wait_seconds, 0.125);
  EXPECT_EQ(taken[0].longest_seconds, 0.75);
  EXPECT_TRUE(windows.Take().empty());
}

// For any number of steps there are not too many windows; none is lost, they are in order, and all but the last have
// equally many steps.
TEST(StepWindows, ManyStepsAreJoined) {
  for (const int64_t steps : {127, 128, 129, 130, 256, 257, 1000, 4099}) {
    StepWindows windows;
    for (int64_t i = 1; i <= steps; ++i) {
      windows.Add(static_cast<double>(i), 1, i == 77 ? 9.0 : 0.5);
    }
    const std::vector<StepWindow> taken = windows.Take();
    EXPECT_LE(taken.size(), StepWindows::kMost);
    EXPECT_GE(taken.size(), std::min<size_t>(steps, StepWindows::kMost / 2));
    int64_t seen = 0;
    double compute = 0, longest = 0;
    for (const StepWindow& window : taken) {
      seen += window.steps;
      compute += window.compute_seconds;
      longest = std::max(longest, window.longest_seconds);
      EXPECT_EQ(window.at_seconds, static_cast<double>(seen));
      if (&window != &taken.back()) {
        EXPECT_EQ(window.steps, taken.front().steps);
      }
    }
    EXPECT_EQ(seen, steps);
    EXPECT_EQ(compute, static_cast<double>(steps));
    EXPECT_EQ(longest, 10);
  }
}

TEST(RankTimes, OneLineARankWithTheTimeBeforeAResume) {
  const std::filesystem::path path = FreshFolder() / "ranks.jsonl";
  {
    RankTimesWriter writer(path, std::nullopt, 100);
    writer.Write(40, {.rank = 2,
                      .role = "worker 2",
                      .node = "cn1",
                      .windows = {{1.5, 4, 0.25, 0.5, 0.125}},
                      .traffic = {.bytes_sent = 8, .bytes_received = 9, .messages = 3},
                      .staleness = {1, 2}});
    writer.Write(80, {.rank = 3, .role = "server 0", .node = "cn2"});
  }
  std::istringstream lines(Slurp(path));
  std::string first, second;
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_EQ(nlohmann::json::parse(first), nlohmann::json::parse(R"({"schema":1,"step":40,"rank":2,
      "role":"worker 2","node":"cn1","seconds":[101.5],"own_steps":[4],"compute_seconds":[0.25],
      "wait_seconds":[0.5],"longest_seconds":[0.125],"bytes_sent":8,"bytes_received":9,"messages":3,
      "staleness":[1,2]})"));
  EXPECT_EQ(nlohmann::json::parse(second), nlohmann::json::parse(R"({"schema":1,"step":80,"rank":3,
      "role":"server 0","node":"cn2","seconds":[],"own_steps":[],"compute_seconds":[],"wait_seconds":[],
      "longest_seconds":[],"bytes_sent":0,"bytes_received":0,"messages":0})"));
}

}  // namespace
}  // namespace dtrain
