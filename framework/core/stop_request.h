// This process remembers that it was asked to stop.
//
// A signal handler asks (runtime/launch/stop_signal.h).  A training run looks at each step; whatever else takes long,
// such as reading a data set or waiting for a lock, calls EndIfStopped between two pieces of
// its work.  Without a handler nobody asks, and a signal ends the process as it always did.
#pragma once

#include <string_view>

#include "framework/core/error.h"

namespace dtrain {

// Notes the signal that asks; the first one counts.  A signal handler may call it.
void RequestStop(int signal) noexcept;
void ForgetStopRequest() noexcept;

// True once a stop was asked for.  Any thread; costs a load.
bool StopRequested() noexcept;
// Returns the first signal's number, 0 for none.
int StopSignalNumber() noexcept;

// Throws StoppedError, "stopped by SIGTERM while <doing>", where a stop was asked for.  The hint is true before the
// first step, after the last, and in a command that does not train.
void EndIfStopped(std::string_view doing);

}  // namespace dtrain
