#include "framework/runtime/stop_signal.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "framework/core/check.h"

namespace dtrain {
namespace {

constexpr std::array<int, 4> kSignals = {SIGUSR1, SIGUSR2, SIGINT, SIGTERM};

std::atomic<int> first_signal{0};
std::atomic<bool> interrupted{false};
std::atomic<bool> installed{false};
std::array<struct sigaction, kSignals.size()> former;

static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

void OnSignal(int signal) {
  if (signal == SIGINT && interrupted.exchange(true)) ::_exit(128 + SIGINT);
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
}

}  // namespace

StopSignals::StopSignals() {
  DT_CHECK(!installed.exchange(true)) << "StopSignals exist already";
  first_signal = 0;
  interrupted = false;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &former[i]);
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &former[i], nullptr);
  first_signal = 0;
  installed = false;
}

bool StopRequested() { return first_signal.load(std::memory_order_relaxed) != 0; }

int StopSignalNumber() { return first_signal.load(std::memory_order_relaxed); }

}  // namespace dtrain
