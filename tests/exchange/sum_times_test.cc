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

using ::testing::ElementsAre;

// Returns each sum of the timeline as "bucket begin duration", in microseconds.
std::vector<std::string> SumsOf(const RankTimeline& timeline) {
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
  return sums;
}

// The channel carries one sum at a time: the second was requested while the first was in flight, the third after it.
TEST(AllReduceTimes, ASumBeginsWhenItIsAskedForAndTheChannelIsFree) {
  HandClock clock;
  RankTimeline timeline;
  AllReduceTimes times(&clock, &timeline);
  const auto at = [&](Nanos microseconds) { clock.now = 1000 * microseconds; };
  at(10), times.Asked();
  at(20), times.Asked();
  at(40), times.Done(false);
  at(50), times.Done(false);
  at(70), times.Asked();
  at(75), times.Done(true);
  EXPECT_THAT(SumsOf(timeline), ElementsAre("0 10 30", "1 40 10", "2 70 5"));
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
  EXPECT_THAT(SumsOf(timeline), ElementsAre("0 0 3", "1 3 2", "0 5 3", "1 8 2"));
}

}  // namespace
}  // namespace dtrain
