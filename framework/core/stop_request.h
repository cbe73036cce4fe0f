// A process-wide flag records that this process was asked to stop.
//
// A signal handler sets it (launch/stop_signal.h).  A training run checks it at each step; other long work,
// such as reading a data set or waiting for a lock, calls EndIfStopped between two parts of it.  Without a handler the
// flag is never set, and a signal ends the process.
#pragma once

#include <string_view>

#include "framework/core/error.h"

namespace dtrain {

// Records a stop request; only the first signal is kept.  Async-signal-safe.
void RequestStop(int signal) noexcept;
void ForgetStopRequest() noexcept;

// True once a stop was requested.  Thread-safe; costs one atomic load.
bool StopRequested() noexcept;
// Returns the first signal's number; 0 for none.
int StopSignalNumber() noexcept;

// Throws StoppedError, "stopped by SIGTERM while <doing>", if a stop was requested.  Its hint (start the same command
// again) is right only before the first step, after the last, and in commands that do not train.
void EndIfStopped(std::string_view doing);

}  // namespace dtrain
