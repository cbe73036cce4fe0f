// Stop signals: USR1, USR2, INT and TERM ask a rank to finish its step, write a checkpoint and end with exit code 75.
//
// The handler only sets a flag (core/stop_request.h).  Ranks may get a signal at different steps, or not at all, so the
// trainer sums the flag over all ranks with each step, and they stop together.  A second INT (Ctrl-C), later than
// kOneRequest, ends the process at once with 130; USR1, USR2 and TERM may be sent twice (by Slurm or mpirun) and mean
// the same as once.
//
// The handler runs on a thread of its own; all other threads have these signals blocked.  It must not run on a thread
// that computes: oneDNN's sgemm sometimes keeps its stack pointer in the heap, and the kernel would write a handler's
// frame there (uxlfoundation/oneDNN, issue 4845).
#pragma once

#include <signal.h>

#include <algorithm>
#include <ctime>
#include <thread>

#include "framework/core/stop_request.h"
#include "framework/core/time.h"

namespace dtrain {

// A signal that is sent twice within this time is one request: timeout(1) signals the program and then its process
// group.
constexpr Nanos kOneRequest = FromSeconds(0.5);

// Handles the signals during its lifetime, then restores the former handlers and mask.  There is at most one in a
// process. The main thread makes it before other threads start, since they inherit its mask.
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

// Receives the signals that end a program in a loop, without a handler.  For processes that supervise others.  The
// signals are blocked during its lifetime and wait until the loop takes them.  Make it before other threads start,
// since they inherit the mask.
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

  // Returns the next signal, or 0 if none arrives within `seconds`, which must be less than one second.
  int Wait(double seconds = 0.1) const {
    const timespec most = {0, static_cast<long>(seconds * 1e9)};
    return std::max(0, ::sigtimedwait(&set_, nullptr, &most));
  }

 private:
  sigset_t set_;
  sigset_t former_;
};

}  // namespace dtrain
