// BlockedSignals: the signals that end a program, taken one by one instead of handled.
#pragma once

#include <signal.h>

#include <algorithm>
#include <ctime>

namespace dtrain {

// Blocked while it lives, the signals wait until a loop takes them; no handler is needed.  Made
// before other threads start: they take over the mask.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD}) sigaddset(&set_, signal);
    struct sigaction hangup = {};
    ::sigaction(SIGHUP, nullptr, &hangup);
    if (hangup.sa_handler != SIG_IGN) sigaddset(&set_, SIGHUP);  // nohup ignores it
    ::pthread_sigmask(SIG_BLOCK, &set_, &former_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &former_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;

  // The next one, or 0 after a moment.
  int Wait() const { return std::max(0, ::sigtimedwait(&set_, nullptr, &kPoll)); }

 private:
  static constexpr timespec kPoll = {0, 100'000'000};

  sigset_t set_;
  sigset_t former_;
};

}  // namespace dtrain
