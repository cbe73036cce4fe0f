// The progress of a training run: samples/s, loss, time left, slowest rank; or what rank 0 does instead of steps.
//
//   epoch 3/10  step 2340/9380  ####----  8123 samples/s  loss 0.0731  0:42 left  slowest rank 2
//   epoch 3/10  step 2814/9380  evaluating for 35 s
//
// On a terminal one line that is rewritten and fits (core/status_line.h); elsewhere a log line, one a minute at
// least, whatever the run does.
#pragma once

#include <cstdint>
#include <mutex>

#include "framework/core/progress_display.h"
#include "framework/core/time.h"
#include "framework/runtime/launch/status_record.h"

namespace dtrain {

struct ProgressPoint {
  int64_t epoch = 0;      // being trained, counted from 1
  int64_t step = 0;       // finished
  double loss = 0;        // of the last step
  int slowest_rank = -1;  // most compute time so far; -1: unknown or a single rank
};

struct RunLength {
  int64_t epochs = 0;
  int64_t steps = 0;  // of the whole run
  int64_t batch = 0;  // global
};

// Rank 0 has one.  Any thread: the trainer's tells of it, a Ticker's looks after it.  Time is passed in, so that
// tests need no clock.
class Progress {
 public:
  explicit Progress(Nanos now, ProgressDisplay display = {});

  // What is known once the data are loaded.
  void Begin(const RunLength& length, const ProgressPoint& first);
  // A step has ended.
  void Update(const ProgressPoint& point, Nanos now);
  // The run does something else from now on; the time until the next Update does not count.
  void Do(Doing doing, Nanos now);
  void Tick(Nanos now);
  // For the end: shows nothing any more.
  void End();

 private:
  using Parts = ProgressDisplay::Parts;
  Parts Position() const;
  Parts OfSteps() const;
  Parts OfWaiting(Nanos now) const;

  std::mutex mutex_;
  ProgressDisplay display_;
  RunLength length_;
  ProgressPoint point_;
  ProgressRate rate_;
  Doing doing_ = Doing::kLoading;
  Nanos since_;  // of what it does; in training, of the step that runs
  bool shown_ = false, ended_ = false;
};

}  // namespace dtrain
