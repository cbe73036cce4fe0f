#include "framework/runtime/stop_signal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "framework/device/cpu/gemm.h"
#include "tests/support/send_signal.h"

namespace dtrain {
namespace {

class StopSignalTest : public testing::TestWithParam<int> {};

TEST_P(StopSignalTest, SetsTheFlag) {
  const StopSignals signals;
  EXPECT_FALSE(StopRequested());
  SendStopSignal(GetParam());
  EXPECT_TRUE(StopRequested());
  EXPECT_EQ(StopSignalNumber(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, StopSignalTest, testing::Values(SIGUSR1, SIGUSR2, SIGINT, SIGTERM));

TEST(StopSignal, RepeatedOnesMeanTheSame) {
  const StopSignals signals;
  for (const int signal : {SIGUSR1, SIGUSR1, SIGTERM, SIGTERM, SIGINT}) SendStopSignal(signal);
  EXPECT_EQ(StopSignalNumber(), SIGUSR1);
}

TEST(StopSignal, IsForgottenByTheNext) {
  {
    const StopSignals signals;
    SendStopSignal(SIGUSR1);
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

// With a handler's frame in its heap, free() would end the process.
TEST(StopSignal, DoNoHarmToProducts) {
  const StopSignals signals;
  std::jthread sender([](std::stop_token stop) {
    while (!stop.stop_requested()) {
      ::kill(::getpid(), SIGUSR1);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  constexpr int64_t kM = 32, kN = 120, kK = 400;  // LeNet's first inner product
  const std::vector<float> a(kM * kK, 1), b(kN * kK, 1);
  for (int i = 0; i < 2000; ++i) {
    std::vector<float> c(kM * kN);
    Multiply({.trans_b = true,
              .m = kM,
              .n = kN,
              .k = kK,
              .a = a.data(),
              .a_stride = kK,
              .b = b.data(),
              .b_stride = kK,
              .c = c.data(),
              .c_stride = kN});
    ASSERT_EQ(c.front() + c.back(), 2 * kK);
  }
}

TEST(StopSignalDeathTest, ASecondCtrlCLeavesAtOnce) {
  EXPECT_EXIT(
      {
        const StopSignals signals;
        SendStopSignal(SIGINT);
        SendStopSignal(SIGINT);
        for (int i = 0; i < 100; ++i) ::usleep(100'000);
        ::_exit(0);
      },
      testing::ExitedWithCode(130), "");
}

}  // namespace
}  // namespace dtrain
