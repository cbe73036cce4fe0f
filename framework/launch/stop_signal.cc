#include "framework/launch/stop_signal.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "framework/core/check.h"
#include "framework/core/status_line.h"

namespace dtrain {
namespace {

constexpr std::array<int, 4> kSignals = {SIGUSR1, SIGUSR2, SIGINT, SIGTERM};

std::atomic<Nanos> interrupted_at;  // 0: not yet
std::atomic<bool> installed;
std::array<struct sigaction, kSignals.size()> former;

static_assert(std::atomic<Nanos>::is_always_lock_free, "used in a signal handler");

void OnSignal(int signal) {
  if (signal == SIGINT) {
    status_line::NoteInterrupt();
    Nanos first = 0;
    const Nanos now = WallNow();
    if (!interrupted_at.compare_exchange_strong(first, now) && now - first > kOneRequest) {
      status_line::WipeAtOnce();
      ::_exit(128 + SIGINT);
    }
  }
  RequestStop(signal);
}

sigset_t StopSet() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kSignals) sigaddset(&set, signal);
  return set;
}

// Runs on the thread that handles the signals.
void AwaitSignals(std::stop_token stop) {
  const sigset_t set = StopSet();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any end;
  end.wait(lock, stop, [] { return false; });
}

}  // namespace

StopSignals::StopSignals() {
  DT_CHECK(!installed.exchange(true)) << "StopSignals exist already";
  ForgetStopRequest();
  interrupted_at = 0;
  const sigset_t set = StopSet();
  ::pthread_sigmask(SIG_BLOCK, &set, &former_mask_);
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &former[i]);
  thread_ = std::jthread(AwaitSignals);
}

StopSignals::~StopSignals() {
  thread_ = {};
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &former[i], nullptr);
  ::pthread_sigmask(SIG_SETMASK, &former_mask_, nullptr);
  ForgetStopRequest();
  installed = false;
}

}  // namespace dtrain
