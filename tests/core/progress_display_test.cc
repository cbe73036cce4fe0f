#include "framework/core/progress_display.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

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

// There is no estimate before the first progress, after a long time without progress, or when the
// progress goes backwards.
TEST(ProgressRate, HasNoEstimateThatSaysNothing) {
  ProgressRate rate;
  EXPECT_EQ(rate.Left(500), "");
  EXPECT_EQ(rate.Left(0), "");
  rate.Measure(0, FromSeconds(0));
  rate.Measure(1e-3, FromSeconds(1));
  for (int second = 2; second < 300; ++second) rate.Measure(1e-3, FromSeconds(second));
  EXPECT_GT(rate.per_second(), 0);
  EXPECT_EQ(rate.Left(1e6), "");
  ProgressRate back;
  back.Measure(10, FromSeconds(0));
  back.Measure(5, FromSeconds(1));
  EXPECT_EQ(back.Left(500), "");
}

TEST(FromSeconds, KeepsWhatItCannotCountWithinItsRange) {
  EXPECT_EQ(FromSeconds(1.5), 1'500'000'000);
  EXPECT_EQ(FromSeconds(-1.5), -1'500'000'000);
  EXPECT_EQ(FromSeconds(1e300), int64_t{1} << 62);
  EXPECT_EQ(FromSeconds(-INFINITY), -(int64_t{1} << 62));
  EXPECT_EQ(FromSeconds(NAN), 0);
  EXPECT_GT(WallNow() + FromSeconds(1e300), WallNow());
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
