// Ticker calls a function at intervals, on its own thread, which blocks all signals.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "framework/core/time.h"

namespace dtrain {

class Ticker {
 public:
  // The first call happens after `interval`; the default is often enough for a display.
  explicit Ticker(std::function<void(Nanos now)> tick, Nanos interval = FromSeconds(0.2));
  ~Ticker();  // ends the thread
  Ticker(const Ticker&) = delete;

 private:
  void Run(const std::stop_token& stop);

  const std::function<void(Nanos)> tick_;
  const Nanos interval_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace dtrain
