// Ticker: calls something now and then, on a thread of its own, which takes no signals.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "framework/core/time.h"

namespace dtrain {

class Ticker {
 public:
  // The first call comes after `interval`; the usual one is often enough for a display.
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
