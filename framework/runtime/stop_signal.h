// Stop signals: USR1, USR2, INT, TERM ask a rank to finish its step, checkpoint and leave with 75.
//
// The handler only sets a flag: ranks may see a signal at different steps, or not at all, so the
// trainer sums the flag over all ranks with each step and they stop together.  A second INT
// (Ctrl-C) leaves at once with 130; USR1, USR2 and TERM may come twice (Slurm, mpirun) and mean the
// same as once.
#pragma once

namespace dtrain {

// Handles the signals while it lives; then the former handlers are back.  One at a time a process,
// made by the main thread before others start.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
};

// True once a stop signal has arrived.  Any thread; costs a load.
bool StopRequested();

// The first signal's number, 0 for none.
int StopSignalNumber();

}  // namespace dtrain
