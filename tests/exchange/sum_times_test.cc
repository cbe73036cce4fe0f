#include "framework/exchange/sum_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrain {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

class HandClock : public Clock {
 public:
  Nanos Now() const override { return now; }
  Nanos now = 0;
};

// One channel: the second was asked for while the first was under way, the third behind it.
TEST(SumTimes, ASumBeginsWhenItIsAskedForAndTheChannelIsFree) {
  HandClock clock;
  SumTimes times(&clock);
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

TEST(SumTimes, RemembersTheLastSteps) {
  HandClock clock;
  SumTimes times(&clock);
  for (int step = 0; step < 40; ++step) {
    times.Asked();
    clock.now += FromSeconds(step);
    times.Done(true);
  }
  ASSERT_EQ(times.steps().size(), SumTimes::kSteps);
  EXPECT_THAT(times.steps().front(), ElementsAre(40 - SumTimes::kSteps));
  times.Clear();
  EXPECT_TRUE(times.steps().empty());
}

}  // namespace
}  // namespace dtrain
