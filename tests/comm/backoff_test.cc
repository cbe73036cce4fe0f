#include "framework/comm/backoff.h"

#include <gtest/gtest.h>

namespace dtrain {
namespace {

// Calls Pause every `step` nanoseconds of a fake clock.
int PausesBeforeTheFirstSleep(Nanos step) {
  Backoff backoff;
  int pauses = 0;
  for (Nanos now = 0; backoff.NextSleep(now) == 0; now += step) ++pauses;
  return pauses;
}

TEST(Backoff, YieldsForFiftyMicrosecondsOfPolling) {
  EXPECT_EQ(PausesBeforeTheFirstSleep(500), 100);
  EXPECT_EQ(PausesBeforeTheFirstSleep(1'000), 50);
}

TEST(Backoff, TimeInWhichOthersRanDoesNotCount) {
  EXPECT_EQ(PausesBeforeTheFirstSleep(300'000), 50);
}

TEST(Backoff, SleepsAtOnceWhenAYieldCostAWholeSlice) {
  EXPECT_EQ(PausesBeforeTheFirstSleep(Backoff::kSlice), 1);
}

TEST(Backoff, ThenSleepsTwiceAsLongEachTimeUpToABound) {
  Backoff backoff;
  Nanos now = 0;
  for (; backoff.NextSleep(now) == 0; now += 1'000) {
  }
  EXPECT_EQ(backoff.NextSleep(now += 20'000), 2 * Backoff::kSleepMin);
  EXPECT_EQ(backoff.NextSleep(now += 40'000), 4 * Backoff::kSleepMin);
  EXPECT_EQ(backoff.NextSleep(now += 80'000), 8 * Backoff::kSleepMin);
  EXPECT_EQ(backoff.NextSleep(now += 160'000), Backoff::kSleepMax);
  EXPECT_EQ(backoff.NextSleep(now += 200'000), Backoff::kSleepMax);
}

TEST(Backoff, ResetYieldsAgain) {
  Backoff backoff;
  for (Nanos now = 0; backoff.NextSleep(now) == 0; now += 1'000) {
  }
  backoff.Reset();
  EXPECT_EQ(backoff.NextSleep(1'000'000), 0);
}

// Uses the real clock: however long each Pause takes, polling comes to the point where it sleeps, and Reset starts it
// again.
TEST(Backoff, PauseComesBackAndCountsItsPolling) {
  Backoff backoff;
  const auto would_sleep = [&] {
    Backoff copy = backoff;
    return copy.NextSleep(WallNow()) > 0;
  };
  int pauses = 0;
  for (; pauses < 10'000'000 && !would_sleep(); ++pauses) backoff.Pause();
  EXPECT_GT(pauses, 0);
  EXPECT_LT(pauses, 10'000'000);
  backoff.Pause();
  EXPECT_TRUE(would_sleep());
  backoff.Reset();
  EXPECT_FALSE(would_sleep());
}

}  // namespace
}  // namespace dtrain
