#include "framework/train/schedule_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "framework/setup/schedule_profile.h"
#include "framework/train/ready_times.h"
#include "tests/support/strategy_text.h"

namespace dtrain {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

TEST(ScheduleWatch, DriftIsMoreThanAFifthAndMattersToTheStep) {
  EXPECT_FALSE(HasDrifted(1, 1.2, 1.5));
  EXPECT_TRUE(HasDrifted(1, 1.21, 1.5));
  EXPECT_FALSE(HasDrifted(1, 0.8, 1.5));
  EXPECT_TRUE(HasDrifted(1, 0.79, 1.5));
  EXPECT_FALSE(HasDrifted(0.01, 0.05, 1)) << "a twenty-fifth of a step";
  EXPECT_TRUE(HasDrifted(0.01, 0.07, 1));
}

// During training, sums of 64 bytes take twice as long, and sums of 6400 bytes four times as long, as on an idle
// network.
TEST(ScheduleWatch, TimesOfSumsGoWithWhatTheRunMadeOfThem) {
  const ReduceTable idle{{{16, 1}, {64, 1}, {640, 2}, {6400, 3}, {64'000, 30}}};
  const std::vector<Range> buckets = {{0, 16}, {16, 1616}, {1616, 1632}, {1632, 1648}};
  // The 64-byte sums are 2, 9 and 1.5.
  const ReduceTable seen = AsSeen(idle, buckets, {2, 12, 9, 1.5});
  std::vector<double> seconds;
  for (const ReduceTable::Entry& entry : seen.entries) seconds.push_back(entry.seconds);
  EXPECT_THAT(seconds,
              ElementsAre(DoubleEq(2), DoubleEq(2), DoubleEq(6), DoubleEq(12), DoubleEq(120)));
  EXPECT_EQ(AsSeen(ReduceTable{}, buckets, {1, 1, 1, 1}), ReduceTable{});
}

// The start-up time of sums has grown: buckets that were sent alone are merged.
TEST(ScheduleWatch, SlowerSumsMakeOtherBuckets) {
  const auto strategy = MakeStrategy("{name: mgwfbp}");
  LayerGradients layer_gradients{{{0, 100}, {100, 200}, {200, 300}}};
  layer_gradients.ready = {1, 2, 3};
  const ReduceTable idle{{{64, 0.1}, {1200, 0.2}}};
  layer_gradients.reduce_seconds = ReduceTimeOf(idle);
  const std::vector<Range> before = strategy->Buckets(layer_gradients);
  EXPECT_EQ(before.size(), 3U);
  layer_gradients.reduce_seconds = ReduceTimeOf(AsSeen(idle, before, {5, 5, 5}));
  EXPECT_EQ(strategy->Buckets(layer_gradients).size(), 1U);
}

TEST(ReadyTimes, AreTheMediansOfTheLastSteps) {
  const LayerGradients layer_gradients{{{0, 10}, {10, 30}, {30, 30}, {30, 40}}};
  ReadyTimes times(layer_gradients, 3);
  for (int step = 0; step < 5; ++step) {
    times.BeginStep();
    times.Ready({0, 5});
    times.Ready({5, 30});
    times.Ready({30, 40});
  }
  EXPECT_EQ(times.steps(), 3U);
  const std::vector<double> medians = times.Medians();
  ASSERT_EQ(medians.size(), 4U);
  EXPECT_GT(medians[0], 0);
  EXPECT_EQ(medians[0], medians[1]) << "both were complete with the second range";
  EXPECT_EQ(medians[1], medians[2]) << "empty ones are there with the one before";
  EXPECT_GE(medians[3], medians[2]);
}

}  // namespace
}  // namespace dtrain
