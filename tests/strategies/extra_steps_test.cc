// Tests how many extra steps DSSP grants a worker.
#include "framework/strategies/ps/extra_steps.h"

#include <gtest/gtest.h>

namespace dtrain::ps {
namespace {

// Worker 0 is fast and has just pushed at 100, with an interval of 10; the others push every `slow`.
class TwoWorkers {
 public:
  explicit TwoWorkers(Nanos slow_last, Nanos slow) {
    extra_.OnPush(0, 90), extra_.OnPush(0, 100);
    extra_.OnPush(1, slow_last - slow), extra_.OnPush(1, slow_last);
    for (int step = 0; step < 5; ++step) clocks_.Finish(0);
    clocks_.Finish(1);
  }
  // Returns the steps that worker 0 may start without waiting.
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
  // The slowest worker pushes next at 132: three more steps end at 130.
  EXPECT_EQ(TwoWorkers(72, 60).Given(8), 3);
  EXPECT_EQ(TwoWorkers(72, 60).Given(2), 2);  // as close as the limit of 2 permits
  // The slowest worker pushes next at 105: waiting 5 is as good as being 5 late.
  EXPECT_EQ(TwoWorkers(45, 60).Given(4), 0);
  // It pushes at 107, then at 137: one more step ends at 110.
  EXPECT_EQ(TwoWorkers(77, 30).Given(2), 1);
  // It pushes at 104, 121, 138, ...: two more steps end at 120.
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

// An evaluation took the time from 100 to 1000.
TEST(ExtraSteps, DoNotTakeABoundaryForPartOfAnInterval) {
  ClockTable clocks(2);
  ExtraSteps extra(2);
  extra.OnPush(0, 90), extra.OnPush(0, 100);
  extra.OnPush(1, 40), extra.OnPush(1, 80);
  extra.OnBoundary();
  extra.OnPush(1, 1000), extra.OnPush(0, 1001);
  clocks.Finish(0);
  // The slowest worker pushes next at 1040, 40 after its last push: four steps of 10 end at 1041; three would end at
  // 1031, which is farther away.
  int given = 0;
  while (given < 8 && extra.Take(0, clocks, 8)) ++given;
  EXPECT_EQ(given, 4);
}

// The slowest worker pushes next at 132, and workers 0 and 2 every 10.  Worker 2 is a step behind worker 0.
TEST(ExtraSteps, AreForTheFastestWorker) {
  ClockTable clocks(3);
  ExtraSteps extra(3);
  for (int step = 0; step < 5; ++step) clocks.Finish(0);
  for (int step = 0; step < 4; ++step) clocks.Finish(2);
  for (const int worker : {0, 2}) extra.OnPush(worker, 90), extra.OnPush(worker, 100);
  extra.OnPush(1, 12), extra.OnPush(1, 72);
  EXPECT_FALSE(extra.Take(2, clocks, 8));
  EXPECT_TRUE(extra.Take(0, clocks, 8));
  // Worker 0 has extra steps left and goes on, though worker 2 is faster now.
  extra.Forget(2);
  clocks.Finish(2), clocks.Finish(2);
  EXPECT_TRUE(extra.Take(2, clocks, 8));
  EXPECT_TRUE(extra.Take(0, clocks, 8));
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
  // By the times alone worker 0 would get extra steps again: the slowest worker's next push is now far away.
  extra.OnPush(1, 112);
  extra.OnPush(0, 120);
  EXPECT_FALSE(extra.Take(0, clocks, 8));
  extra.Forget(0);
  EXPECT_TRUE(extra.Take(0, clocks, 8));
}

}  // namespace
}  // namespace dtrain::ps
