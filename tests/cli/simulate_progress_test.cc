#include "framework/cli/simulate_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace dtrain {
namespace {

using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::SizeIs;

class SimulateProgressTest : public ::testing::Test {
 protected:
  ProgressDisplay Display(bool rewritten) {
    return {rewritten, [this](const ProgressDisplay::Parts& parts) {
              shown_.push_back(status_line::Fit(parts, columns_));
            }};
  }
  int columns_ = 100;
  std::vector<std::string> shown_;
};

TEST_F(SimulateProgressTest, SaysWhichRunItIsAndHowFar) {
  SimulateProgress progress("ps_ssp", 3, 6, 0, Display(true));
  progress.Tick({100, 1000, FromSeconds(2.5)}, FromSeconds(1));
  progress.Tick({200, 1000, FromSeconds(5)}, FromSeconds(2));
  EXPECT_THAT(
      shown_,
      ElementsAre("ps_ssp  run 3/6  step 100/1000  #-------------  2.5 virtual s",
                  "ps_ssp  run 3/6  step 200/1000  ##------------  5.0 virtual s  8.0 s left"));
}

TEST_F(SimulateProgressTest, ASingleRunHasNoNumber) {
  SimulateProgress progress("", 1, 1, 0, Display(true));
  progress.Tick({1, 10, 0}, FromSeconds(1));
  EXPECT_THAT(shown_, ElementsAre("step 1/10  #-------------  0.0 virtual s"));
}

// The first steps of 16,384 workers: after the first ones are done, the rate falls until others are.
TEST_F(SimulateProgressTest, LeavesOutATimeThatNobodyCanWaitFor) {
  SimulateProgress progress("", 1, 1, 0, Display(true));
  progress.Tick({0, 1e6, 0}, FromSeconds(1));
  progress.Tick({1 / 16384.0, 1e6, 0}, FromSeconds(2));
  for (int second = 3; second < 200; ++second) {
    progress.Tick({1 / 16384.0, 1e6, 0}, FromSeconds(second));
    EXPECT_EQ(shown_.back(), "step 0/1000000  --------------  0.0 virtual s");
  }
}

TEST_F(SimulateProgressTest, FitsEveryWidth) {
  SimulateProgress progress("allreduce+gaussiank", 10, 12, 0, Display(true));
  for (columns_ = 20; columns_ <= 200; ++columns_) {
    progress.Tick({100. * columns_, 1e6, FromSeconds(columns_)}, FromSeconds(columns_));
    EXPECT_LE(shown_.back().size(), static_cast<size_t>(columns_));
  }
}

TEST_F(SimulateProgressTest, TheLogHasALineAMinuteThoughNothingMoves) {
  SimulateProgress progress("", 1, 1, 0, Display(false));
  for (int second = 0; second < 600; ++second) progress.Tick({5, 10, 0}, FromSeconds(second));
  EXPECT_THAT(shown_, SizeIs(Ge(10U)));
}

}  // namespace
}  // namespace dtrain
