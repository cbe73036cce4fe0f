// Shows the progress of a long command: in the status line of a terminal, elsewhere in a log line now and then.
// BusyProgress does so from a thread while the command itself is busy.
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

  // Writes to stderr; whether that is a terminal is decided here.
  ProgressDisplay();
  // For tests: if `rewritten` is true, `writer` gets a status line every 0.2 s, else a log line every 30 s.
  ProgressDisplay(bool rewritten, Writer writer);

  bool rewritten() const { return rewritten_; }
  // True if the next line is due: 0.2 s after the last where the line is rewritten, else 30 s, so that a caller that
  // asks now and then logs at least once a minute.
  bool Due(Nanos now) const;
  void Show(const Parts& parts, Nanos now);
  // Postpones the next line as if one were shown now.
  void Wait(Nanos now) { shown_at_ = now; }
  void Clear();

 private:
  const bool rewritten_;
  const Writer writer_;
  Nanos shown_at_ = 0;
};

// Steps per second, smoothed, from progress measured at successive times.
class ProgressRate {
 public:
  void Measure(double done, Nanos now);
  void Pause() { measured_at_ = -1; }          // the time until the next Measure does not count
  double per_second() const { return rate_; }  // 0: unknown
  std::string Left(double steps) const;        // "0:42 left"; "" if unknown (TimeLeft)

 private:
  Nanos measured_at_ = -1;
  double measured_ = 0;
  double rate_ = 0;
};

// Returns "35 s", "1:05".
std::string WholeSeconds(Nanos time);

// While it lives, shows an activity of unknown length: "loading data for 35 s", once it has taken a second.
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
