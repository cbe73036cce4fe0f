#include "framework/runtime/stop_signal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace dtrain {
namespace {

class StopSignalTest : public testing::TestWithParam<int> {};

TEST_P(StopSignalTest, SetsTheFlag) {
  const StopSignals signals;
  EXPECT_FALSE(StopRequested());
  ::raise(GetParam());
  EXPECT_TRUE(StopRequested());
  EXPECT_EQ(StopSignalNumber(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, StopSignalTest, testing::Values(SIGUSR1, SIGUSR2, SIGINT, SIGTERM));

TEST(StopSignal, RepeatedOnesMeanTheSame) {
  const StopSignals signals;
  for (const int signal : {SIGUSR1, SIGUSR1, SIGTERM, SIGTERM, SIGINT}) ::raise(signal);
  EXPECT_EQ(StopSignalNumber(), SIGUSR1);
}

TEST(StopSignal, IsForgottenByTheNext) {
  {
    const StopSignals signals;
    ::raise(SIGUSR1);
  }
  const StopSignals signals;
  EXPECT_FALSE(StopRequested());
}

int handled = 0;
void Count(int) { ++handled; }

TEST(StopSignal, GivesTheFormerHandlersBack) {
  ::signal(SIGUSR1, Count);
  { const StopSignals signals; }
  ::raise(SIGUSR1);
  EXPECT_EQ(handled, 1);
  ::signal(SIGUSR1, SIG_DFL);
}

TEST(StopSignalDeathTest, ASecondCtrlCLeavesAtOnce) {
  EXPECT_EXIT(
      {
        const StopSignals signals;
        ::raise(SIGINT);
        ::raise(SIGINT);
        ::_exit(0);
      },
      testing::ExitedWithCode(130), "");
}

}  // namespace
}  // namespace dtrain
