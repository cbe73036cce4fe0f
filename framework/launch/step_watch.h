// StepWatch: ends a run of one process if a step hangs, for example on a GPU or a file system that no longer answers.
// No other rank could notice that.
//
// A step, including the wait for its data, hangs if it takes 20 times the longest one so far and longer than
// `stall_seconds`; the first step hangs if it takes ten times `stall_seconds`.  Work between steps (evaluation,
// checkpoints, output to a terminal that Ctrl-S holds) has no limit, since there is nothing to compare it with.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "framework/core/ticker.h"

namespace dtrain {

class StepWatch {
 public:
  // `stall_seconds` 0 means kStoppedSeconds.  `on_hung` is called once, on the watch's thread, with the message: "a
  // step has not ended for 63 s, ...".
  StepWatch(double stall_seconds, std::function<void(const std::string&)> on_hung);
  StepWatch(const StepWatch&) = delete;
  ~StepWatch();  // ends the thread

  // The trainer's thread calls this when a step begins and the one before has ended.  `on_hung` sees everything that
  // the thread wrote before.
  void StepBegins() { begun_.fetch_add(1, std::memory_order_release); }
  // Reports that no step runs until the next one begins.
  void Pause() {
    paused_at_.store(begun_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }

 private:
  void Look();

  const int64_t looks_min_;
  const std::function<void(const std::string&)> on_hung_;
  std::atomic<int64_t> begun_ = 0;
  std::atomic<int64_t> paused_at_ = 0;  // the value of begun_ at the last boundary
  // Only the watch's thread uses the following members.
  int64_t seen_ = 0;                 // the value of begun_ at the last look
  int64_t looks_ = 0, longest_ = 0;  // looks during this step, and during the longest step
  bool reported_ = false;
  Ticker ticker_;
};

}  // namespace dtrain
