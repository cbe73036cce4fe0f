// The progress line of a training run: samples/s, loss, time left and slowest rank, or what rank 0 does in place of
// steps.
//
//   epoch 3/10  step 2340/9380  ####----  8123 samples/s  loss 0.0731  0:42 left  slowest rank 2
//   epoch 3/10  step 2814/9380  evaluating for 35 s
//
// A terminal shows one line that is rewritten and fits its width (core/status_line.h).  Otherwise log lines are
// written, at least one a minute, even if no step ends.
#pragma once

#include <cstdint>
#include <mutex>

#include "framework/core/progress_display.h"
#include "framework/core/time.h"
#include "framework/launch/status_record.h"

namespace dtrain {

struct ProgressPoint {
  int64_t epoch = 0;  // the epoch being trained, counted from 1
  int64_t step = 0;   // finished steps
  double loss = 0;    // of the last step
  // The rank with the most compute time so far; -1: unknown, or there is only one rank.
  int slowest_rank = -1;
};

struct RunLength {
  int64_t epochs = 0;
  int64_t steps = 0;  // in the whole run
  int64_t batch = 0;  // global batch size
};

// Rank 0 has one.  Thread-safe: the trainer's thread updates it, and a Ticker's thread calls Tick.  The time is an
// argument, so that tests need no clock.
class Progress {
 public:
  explicit Progress(Nanos now, ProgressDisplay display = {});

  // Sets the length of the run and where it begins.  Called once the data are loaded.
  void Begin(const RunLength& length, const ProgressPoint& first);
  // Reports the end of a step.
  void Update(const ProgressPoint& point, Nanos now);
  // Reports that the run now does something other than training steps.  The time until the next Update does not count
  // in the rate.
  void Do(Doing doing, Nanos now);
  void Tick(Nanos now);
  // Clears the line and shows nothing afterwards.
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
  Nanos since_;  // when `doing_` began; in training, when the current step began
  bool shown_ = false, ended_ = false;
};

}  // namespace dtrain
