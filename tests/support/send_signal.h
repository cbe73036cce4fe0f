// Sends this process a stop signal and returns when StopSignals has seen it, on its own thread.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <thread>

#include "framework/launch/stop_signal.h"

namespace dtrain {

inline void SendStopSignal(int signal) {
  ::kill(::getpid(), signal);
  sigset_t pending;
  do {
    std::this_thread::yield();
    ::sigpending(&pending);
  } while (sigismember(&pending, signal) == 1 || !StopRequested());
}

}  // namespace dtrain
