// Collects, for a test, what a watch reports from its thread.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace dtrain {

class Said {
 public:
  std::function<void(const std::string&)> Sink() {
    return [this](const std::string& what) {
      const std::lock_guard lock(mutex_);
      what_ = what;
    };
  }
  std::string Within(double seconds) {
    for (int i = 0; i < seconds * 50; ++i) {
      if (const std::string what = Now(); !what.empty()) return what;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return Now();
  }
  std::string Now() {
    const std::lock_guard lock(mutex_);
    return what_;
  }

 private:
  std::mutex mutex_;
  std::string what_;
};

}  // namespace dtrain
