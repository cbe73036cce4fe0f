// How a long command shows how far it is: on a terminal by the status line, elsewhere by a line of the log now
// and then; and who looks after it while the command itself is busy.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/core/status_line.h"
#include "framework/core/ticker.h"
#include "framework/core/time.h"

namespace dtrain {

class ProgressDisplay {
 public:
  using Parts = std::vector<status_line::Part>;
  using Writer = std::function<void(const Parts&)>;

  // On stderr, as it is when the display is made.
  ProgressDisplay();
  // For tests: `rewritten` says whether `writer` gets a line five times a second or one for the log.
  ProgressDisplay(bool rewritten, Writer writer);

  bool rewritten() const { return rewritten_; }
  // Five times a second where the line is rewritten, else every 30 s: a line a minute at least, by whoever asks
  // now and then.
  bool Due(Nanos now) const;
  void Show(const Parts& parts, Nanos now);
  // Shown later, as if something were shown now.
  void Wait(Nanos now) { shown_at_ = now; }
  void Clear();

 private:
  const bool rewritten_;
  const Writer writer_;
  Nanos shown_at_ = 0;
};

// Steps a second, smoothed, from how far somebody was at which time.
class ProgressRate {
 public:
  void Measure(double done, Nanos now);
  void Pause() { measured_at_ = -1; }          // the time until the next Measure does not count
  double per_second() const { return rate_; }  // 0: unknown
  std::string Left(double steps) const;        // "0:42 left"; "" where nobody can tell (TimeLeft)

 private:
  Nanos measured_at_ = -1;
  double measured_ = 0;
  double rate_ = 0;
};

// "35 s", "1:05"
std::string WholeSeconds(Nanos time);

// What a command does that cannot say how far it is: "loading data for 35 s", once it has taken a moment.
class BusyProgress {
 public:
  explicit BusyProgress(std::string what);
  ~BusyProgress();

 private:
  const std::string what_;
  const Nanos begin_;
  ProgressDisplay display_;
  std::optional<Ticker> ticker_;
};

}  // namespace dtrain
