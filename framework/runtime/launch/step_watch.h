// StepWatch: ends a run of one process whose step hangs, where no other rank is there to notice: on a GPU or a
// file system that answers no more.
//
// A step, with the wait for its data, hangs when it takes 20 times the longest one so far and longer than
// `stall_seconds`; the first one, when it takes ten times as long as that.  What is done between steps (evaluation,
// checkpoints, words to a terminal that Ctrl-S holds) has no limit: there is nothing to compare it with.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "framework/core/ticker.h"

namespace dtrain {

class StepWatch {
 public:
  // `stall_seconds` 0: kStoppedSeconds.  `on_hung` is called once, on the watch's thread, with what to say: "a step
  // has not ended for 63 s, ...".
  StepWatch(double stall_seconds, std::function<void(const std::string&)> on_hung);
  StepWatch(const StepWatch&) = delete;
  ~StepWatch();  // ends the thread

  // The trainer's thread: a step begins, and the one before has ended.  `on_hung` sees what was written before it.
  void StepBegins() { begun_.fetch_add(1, std::memory_order_release); }
  // No step is under way until the next one begins.
  void Boundaries() {
    resting_at_.store(begun_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }

 private:
  void Look();

  const int64_t looks_min_;
  const std::function<void(const std::string&)> on_hung_;
  std::atomic<int64_t> begun_ = 0;
  std::atomic<int64_t> resting_at_ = 0;  // of begun_
  // The watch's thread's alone.
  int64_t seen_ = 0;                 // of begun_, at the last look
  int64_t looks_ = 0, longest_ = 0;  // of this step, of all
  bool told_ = false;
  Ticker ticker_;
};

}  // namespace dtrain
