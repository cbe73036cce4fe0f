// How many steps DSSP lets a worker go on.
#include "framework/strategies/ps/extra_steps.h"

#include <gtest/gtest.h>

namespace dtrain::ps {
namespace {

// Worker 0 is fast, the others push every `slow`; worker 0 has just pushed at 100, its interval 10.
class TwoWorkers {
 public:
  explicit TwoWorkers(Nanos slow_last, Nanos slow) {
    extra_.OnPush(0, 90), extra_.OnPush(0, 100);
    extra_.OnPush(1, slow_last - slow), extra_.OnPush(1, slow_last);
    for (int step = 0; step < 5; ++step) clocks_.Finish(0);
    clocks_.Finish(1);
  }
  // Steps that it may start without waiting.
  int Given(int64_t most) {
    int given = 0;
    while (given < most && extra_.Take(0, clocks_, most)) ++given;
    return given;
  }

 private:
  ClockTable clocks_{2};
  ExtraSteps extra_{2};
};

TEST(ExtraSteps, EndWhereTheSlowestPushes) {
  // The slowest pushes next at 132: three steps more end at 130.
  EXPECT_EQ(TwoWorkers(72, 60).Given(8), 3);
  EXPECT_EQ(TwoWorkers(72, 60).Given(2), 2);  // as near as they may
  // At 105: waiting 5 is as good as being 5 late.
  EXPECT_EQ(TwoWorkers(45, 60).Given(4), 0);
  // At 107, then 137: one step more ends at 110.
  EXPECT_EQ(TwoWorkers(77, 30).Given(2), 1);
  // At 104, 121, 138, ...: two steps more end at 120.
  EXPECT_EQ(TwoWorkers(87, 17).Given(8), 2);
}

TEST(ExtraSteps, AreNoneWhereTheSlowestIsOverdue) { EXPECT_EQ(TwoWorkers(50, 40).Given(8), 0); }

TEST(ExtraSteps, AreNoneWhereNothingIsKnown) {
  ClockTable clocks(2);
  ExtraSteps extra(2);
  extra.OnPush(0, 90), extra.OnPush(0, 100);
  clocks.Finish(0), clocks.Finish(0);
  EXPECT_FALSE(extra.Take(0, clocks, 8));
  extra.OnPush(1, 60);
  EXPECT_FALSE(extra.Take(0, clocks, 8));
}

// An evaluation took from 100 to 1000.
TEST(ExtraSteps, DoNotTakeABoundaryForPartOfAnInterval) {
  ClockTable clocks(2);
  ExtraSteps extra(2);
  extra.OnPush(0, 90), extra.OnPush(0, 100);
  extra.OnPush(1, 40), extra.OnPush(1, 80);
  extra.OnBoundary();
  extra.OnPush(1, 1000), extra.OnPush(0, 1001);
  clocks.Finish(0);
  // The slowest pushes next at 1040, 40 behind its last: four steps of 10 end at 1041, 1031 is farther.
  int given = 0;
  while (given < 8 && extra.Take(0, clocks, 8)) ++given;
  EXPECT_EQ(given, 4);
}

TEST(ExtraSteps, WaitForTheLastOfSeveralSlowest) {
  ClockTable clocks(3);
  ExtraSteps extra(3);
  for (int step = 0; step < 5; ++step) clocks.Finish(0);
  extra.OnPush(0, 90), extra.OnPush(0, 100);
  extra.OnPush(1, 41), extra.OnPush(1, 71);  // next at 101
  extra.OnPush(2, 50), extra.OnPush(2, 85);  // next at 120
  EXPECT_TRUE(extra.Take(0, clocks, 8));
  EXPECT_TRUE(extra.Take(0, clocks, 8));
  EXPECT_FALSE(extra.Take(0, clocks, 8));
}

TEST(ExtraSteps, AreGivenAnewOnlyToAWorkerThatWasWithinTheBound) {
  ClockTable clocks(2);
  ExtraSteps extra(2);
  for (int step = 0; step < 5; ++step) clocks.Finish(0);
  extra.OnPush(0, 90), extra.OnPush(0, 100);
  extra.OnPush(1, 62), extra.OnPush(1, 87);  // next at 112: one step more ends at 110
  EXPECT_TRUE(extra.Take(0, clocks, 8));
  extra.OnPush(0, 110);
  EXPECT_FALSE(extra.Take(0, clocks, 8));
  // By the times alone it would get steps again: the slowest's next push is far away now.
  extra.OnPush(1, 112);
  extra.OnPush(0, 120);
  EXPECT_FALSE(extra.Take(0, clocks, 8));
  extra.Forget(0);
  EXPECT_TRUE(extra.Take(0, clocks, 8));
}

}  // namespace
}  // namespace dtrain::ps
