// The progress line: samples/s, loss, time left, slowest rank.
//
//   epoch 3/10  step 2340/9380  ####----  8123 samples/s  loss 0.0731  0:42 left  slowest rank 2
//
// On a terminal one line that is rewritten; elsewhere a log line now and then.  NO_COLOR is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "framework/core/time.h"

namespace dtrain {

struct ProgressPoint {
  int64_t epoch = 0;      // being trained, counted from 1
  int64_t step = 0;       // finished
  double loss = 0;        // of the last step
  int slowest_rank = -1;  // most compute time so far; -1: unknown or a single rank
};

struct ProgressOptions {
  int64_t epochs = 0;
  int64_t steps = 0;  // of the whole run
  int64_t batch = 0;  // global
  bool terminal = false;
  bool color = false;
};

// terminal and color from stderr, from the supervisor's word about its own (kProgressVariable), and
// from NO_COLOR.
void DetectTerminal(ProgressOptions& options);

// Rank 0 has one.  Time is passed in, so that tests need no clock.
class Progress {
 public:
  using Writer = std::function<void(std::string_view)>;

  // `writer` gets text for the terminal (default: stderr); log lines go to log::Info.
  explicit Progress(const ProgressOptions& options, Writer writer = {});

  // Shows something when it is due (5 times a second on a terminal, every 30 s in a log).
  void Update(const ProgressPoint& point, Nanos now);

  // Wipes the line before other output, or at the end; the time until the next Update does not
  // count (evaluation, checkpoint).
  void Pause();

 private:
  std::string Text(const ProgressPoint& point) const;
  std::string Bar(int64_t step) const;
  void Measure(const ProgressPoint& point, Nanos now);

  ProgressOptions options_;
  Writer writer_;
  Nanos measured_at_ = -1;  // end of the last interval of the rate; -1: none yet
  int64_t measured_step_ = 0;
  double steps_per_second_ = 0;  // smoothed; 0: unknown
  Nanos shown_at_ = -1;
  bool visible_ = false;
};

}  // namespace dtrain
