#include "framework/core/ticker.h"

#include <signal.h>

#include <chrono>
#include <utility>

namespace dtrain {

Ticker::Ticker(std::function<void(Nanos)> tick, Nanos interval)
    : tick_(std::move(tick)), interval_(interval) {
  sigset_t all, former;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &former);
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  ::pthread_sigmask(SIG_SETMASK, &former, nullptr);
}

Ticker::~Ticker() = default;

void Ticker::Run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait_for(lock, stop, std::chrono::nanoseconds(interval_), [] { return false; });
    if (stop.stop_requested()) return;
    tick_(WallNow());
  }
}

}  // namespace dtrain
