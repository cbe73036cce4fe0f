#include "framework/launch/stop_signal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "framework/device/cpu/threads.h"
#include "framework/kernels/cpu/packed_gemm.h"
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

std::atomic<pid_t> handled_on;
void NoteThread(int) { handled_on = ::gettid(); }

// Signals must do no harm, whatever a thread does with its stack.
TEST(StopSignal, AreHandledOnAThreadOfTheirOwn) {
  const StopSignals signals;
  struct sigaction action = {};
  action.sa_handler = NoteThread;
  for (const int signal : {SIGUSR1, SIGUSR2, SIGINT, SIGTERM}) {
    ::sigaction(signal, &action, nullptr);
    handled_on = 0;
    ::kill(::getpid(), signal);
    for (int i = 0; i < 10'000 && handled_on == 0; ++i) ::usleep(1000);
    EXPECT_NE(handled_on, 0) << signal;
    EXPECT_NE(handled_on, ::gettid()) << signal;
  }
}

// Sends SIGUSR1 to the process 50,000 times a second.
void StartSignalTimer() {
  sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGUSR1;
  timer_t timer = {};
  ASSERT_EQ(::timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
  const itimerspec often = {{0, 20'000}, {0, 20'000}};
  ASSERT_EQ(::timer_settime(timer, 0, &often, nullptr), 0);
}

struct Product {
  int64_t m, n, k;
  bool trans_a, trans_b;
};

// While oneDNN computes one of these products with AVX-512, its stack pointer is in the heap most of the time.  (With
// AVX2 it is for some of them, where a handler's frame does no harm.)
constexpr Product kProducts[] = {
    {32, 120, 400, true, false}, {64, 84, 120, false, false},  {64, 84, 120, false, true},
    {16, 64, 147, false, false}, {16, 64, 147, true, true},    {50, 64, 500, false, true},
    {50, 64, 500, true, false},  {64, 500, 800, true, false},  {3, 500, 800, true, true},
    {3, 500, 800, false, false}, {256, 256, 256, false, false}};

// Returns whether a product of ones is correct; repeats it for 200 million multiplications.
bool IsRight(const Product& p) {
  const std::vector<float> a(p.m * p.k, 1), b(p.n * p.k, 1);
  for (int64_t i = 0; i < 200'000'000; i += p.m * p.n * p.k) {
    std::vector<float> c(p.m * p.n);
    Multiply({.a = ConstMatrix::Dense(a.data(), p.trans_a ? p.k : p.m, p.trans_a ? p.m : p.k),
              .b = ConstMatrix::Dense(b.data(), p.trans_b ? p.n : p.k, p.trans_b ? p.k : p.n),
              .c = Matrix::Dense(c.data(), p.m, p.n),
              .trans_a = p.trans_a,
              .trans_b = p.trans_b});
    for (const float value : c) {
      if (value != static_cast<float>(p.k)) return false;
    }
  }
  return true;
}

// A handler's frame in the heap would overwrite numbers, or make free() abort the process.
TEST(StopSignalDeathTest, DoNoHarmToProducts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // StopSignals starts a thread
  EXPECT_EXIT(
      {
        const StopSignals signals;
        ApplyThreadBudget(1);  // the signal would reach this thread
        StartSignalTimer();
        int wrong = 0;
        for (const Product& product : kProducts) wrong += IsRight(product) ? 0 : 1;
        ::_exit(!StopRequested() ? 100 : wrong);
      },
      testing::ExitedWithCode(0), "");
}

TEST(StopSignalDeathTest, ASecondCtrlCLeavesAtOnce) {
  EXPECT_EXIT(
      {
        const StopSignals signals;
        SendStopSignal(SIGINT);
        ::usleep(static_cast<useconds_t>(1.2e6 * ToSeconds(kOneRequest)));
        SendStopSignal(SIGINT);
        for (int i = 0; i < 100; ++i) ::usleep(100'000);
        ::_exit(0);
      },
      testing::ExitedWithCode(130), "");
}

// timeout(1) sends two signals.
TEST(StopSignal, TwoInterruptsAtOnceAreOneRequest) {
  const StopSignals signals;
  SendStopSignal(SIGINT);
  SendStopSignal(SIGINT);
  EXPECT_EQ(StopSignalNumber(), SIGINT);
}

}  // namespace
}  // namespace dtrain
