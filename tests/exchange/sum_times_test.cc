#include "framework/exchange/all_reduce_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "framework/core/timeline_file.h"
#include "tests/support/hand_clock.h"

namespace dtrain {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

// The channel carries one sum at a time: the second was requested while the first was in flight, the third after it.
TEST(AllReduceTimes, ASumBeginsWhenItIsAskedForAndTheChannelIsFree) {
  HandClock clock;
  AllReduceTimes times(&clock, nullptr);
  const auto at = [&](double seconds) { clock.now = FromSeconds(seconds); };
  at(1), times.Asked();
  at(2), times.Asked();
  at(4), times.Done(false);
  at(5), times.Done(false);
  at(7), times.Asked();
  at(7.5), times.Done(true);
  ASSERT_EQ(times.steps().size(), 1U);
  EXPECT_THAT(times.steps().front(), ElementsAre(DoubleEq(3), DoubleEq(1), DoubleEq(0.5)));
}

TEST(AllReduceTimes, RemembersTheLastSteps) {
  HandClock clock;
  AllReduceTimes times(&clock, nullptr);
  for (int step = 0; step < 40; ++step) {
    times.Asked();
    clock.now += FromSeconds(step);
    times.Done(true);
  }
  ASSERT_EQ(times.steps().size(), AllReduceTimes::kSteps);
  EXPECT_THAT(times.steps().front(), ElementsAre(40 - AllReduceTimes::kSteps));
  times.Clear();
  EXPECT_TRUE(times.steps().empty());
}

// Each sum is shown with its bucket, in the plan's order; the next step begins with the first bucket again.
TEST(AllReduceTimes, ATimelineHasALaneOfThem) {
  HandClock clock;
  RankTimeline timeline;
  AllReduceTimes times(&clock, &timeline);
  for (int step = 0; step < 2; ++step) {
    times.Asked(), times.Asked();
    clock.now += 3000, times.Done(false);
    clock.now += 2000, times.Done(true);
  }
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("dtrain-sum-times-{}.json", ::getpid());
  TimelineFile file(path);
  file.Add(timeline.Pack({.rank = 0, .role = "worker 0"}));
  file.Finish();
  const auto json = nlohmann::json::parse(ReadFile(path));
  std::filesystem::remove(path);
  std::vector<std::string> sums;
  for (const auto& event : json["traceEvents"]) {
    if (event["name"] == "sum") {
      sums.push_back(fmt::format("{} {} {}", event["args"]["bucket"].get<int>(),
                                 event["ts"].get<double>(), event["dur"].get<double>()));
    }
  }
  EXPECT_THAT(sums, ElementsAre("0 0 3", "1 3 2", "0 5 3", "1 8 2"));
}

}  // namespace
}  // namespace dtrain
