// Stop signals: USR1, USR2, INT, TERM ask a rank to finish its step, checkpoint and leave with 75.
//
// The handler only sets a flag (core/stop_request.h): ranks may see a signal at different steps, or not at all, so the
// trainer sums the flag over all ranks with each step and they stop together.  A second INT
// (Ctrl-C), later than kOneRequest, leaves at once with 130; USR1, USR2 and TERM may come twice
// (Slurm, mpirun) and mean the same as once.
//
// The handler runs on a thread of its own; all others have these signals blocked.  It must not run
// on one that computes: oneDNN's sgemm has its stack pointer in the heap at times, and there the
// kernel would write a handler's frame (uxlfoundation/oneDNN, issue 4845).
#pragma once

#include <signal.h>

#include <algorithm>
#include <ctime>
#include <thread>

#include "framework/core/stop_request.h"
#include "framework/core/time.h"

namespace dtrain {

// A signal that comes twice within this time is one request: timeout(1) signals the program and then the group
// that the program is in.
constexpr Nanos kOneRequest = FromSeconds(0.5);

// Handles the signals while it lives; then the former handlers and mask are back.  One at a time a
// process, made by the main thread before others start: they take over its mask.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  sigset_t former_mask_;
  std::jthread thread_;
};

// For those who look after other processes: the signals that end a program, taken one by one
// instead of handled.  Blocked while it lives, they wait until a loop takes them; no handler is
// needed.  Made before other threads start: they take over the mask.
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

  // The next one, or 0 after so long; less than a second.
  int Wait(double seconds = 0.1) const {
    const timespec most = {0, static_cast<long>(seconds * 1e9)};
    return std::max(0, ::sigtimedwait(&set_, nullptr, &most));
  }

 private:
  sigset_t set_;
  sigset_t former_;
};

}  // namespace dtrain
