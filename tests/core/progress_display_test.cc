#include "framework/core/progress_display.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

namespace dtrain {
namespace {

using testing::HasSubstr;

TEST(ProgressDisplay, IsDueFiveTimesASecondOrTwiceAMinute) {
  for (const auto& [rewritten, seconds] : {std::pair(true, 0.2), {false, 30.0}}) {
    ProgressDisplay display(rewritten, [](const auto&) {});
    display.Show({{"x"}}, FromSeconds(100));
    EXPECT_FALSE(display.Due(FromSeconds(100 + 0.99 * seconds)));
    EXPECT_TRUE(display.Due(FromSeconds(100 + seconds)));
    display.Wait(FromSeconds(200));
    EXPECT_FALSE(display.Due(FromSeconds(200 + 0.99 * seconds)));
  }
}

TEST(ProgressDisplay, WithoutATerminalItIsALineOfTheLogWithoutTheBar) {
  ProgressDisplay display;
  testing::internal::CaptureStderr();
  display.Show({{"step 1"}, {"", 0, 0.5}, {"9 s left"}}, 0);
  display.Clear();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("info step 1  9 s left\n"));
}

TEST(ProgressRate, IsSmoothedAndLeavesPausesOut) {
  ProgressRate rate;
  rate.Measure(0, FromSeconds(1));
  EXPECT_EQ(rate.per_second(), 0);
  rate.Measure(100, FromSeconds(2));
  EXPECT_DOUBLE_EQ(rate.per_second(), 100);
  EXPECT_EQ(rate.Left(500), "5.0 s left");
  rate.Measure(300, FromSeconds(3));
  EXPECT_DOUBLE_EQ(rate.per_second(), 120);
  rate.Pause();
  rate.Measure(300, FromSeconds(50));
  EXPECT_DOUBLE_EQ(rate.per_second(), 120);
}

TEST(WholeSeconds, AreShort) {
  EXPECT_EQ(WholeSeconds(FromSeconds(35.9)), "35 s");
  EXPECT_EQ(WholeSeconds(FromSeconds(65.9)), "1:05");
}

TEST(Ticker, TicksUntilItGoes) {
  std::atomic<int> ticks = 0;
  {
    const Ticker ticker([&](Nanos) {
      ++ticks;
      ticks.notify_all();
    });
    ticks.wait(0);
  }
  EXPECT_GE(ticks, 1);
}

}  // namespace
}  // namespace dtrain
