// Stop signals: USR1, USR2, INT, TERM ask a rank to finish its step, checkpoint and leave with 75.
//
// The handler only sets a flag: ranks may see a signal at different steps, or not at all, so the
// trainer sums the flag over all ranks with each step and they stop together.  A second INT
// (Ctrl-C) leaves at once with 130; USR1, USR2 and TERM may come twice (Slurm, mpirun) and mean the
// same as once.
//
// The handler runs on a thread of its own; all others have these signals blocked.  It must not run
// on one that computes: oneDNN's sgemm has its stack pointer in the heap at times, and there the
// kernel would write a handler's frame (uxlfoundation/oneDNN, issue 4845).
#pragma once

#include <signal.h>

#include <thread>

namespace dtrain {

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

// True once a stop signal has arrived.  Any thread; costs a load.
bool StopRequested();

// The first signal's number, 0 for none.
int StopSignalNumber();

}  // namespace dtrain
