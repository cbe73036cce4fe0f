#include "framework/core/stop_request.h"

#include <string.h>

#include <atomic>

#include <fmt/format.h>

namespace dtrain {
namespace {

std::atomic<int> first_signal;

static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

}  // namespace

void RequestStop(int signal) noexcept {
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
}

void ForgetStopRequest() noexcept { first_signal = 0; }

bool StopRequested() noexcept { return first_signal.load(std::memory_order_relaxed) != 0; }

int StopSignalNumber() noexcept { return first_signal.load(std::memory_order_relaxed); }

void EndIfStopped(std::string_view doing) {
  if (!StopRequested()) return;
  throw StoppedError(
      fmt::format("stopped by SIG{} while {}", ::sigabbrev_np(StopSignalNumber()), doing),
      "start the same command again; a run with checkpoints goes on with --resume auto");
}

}  // namespace dtrain
