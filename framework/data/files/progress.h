// A progress bar for downloads: bytes, rate and time left, on a terminal only.
#pragma once

#include <cstdint>
#include <string>

#include "framework/core/time.h"

namespace dtrain {

// "train-images.gz  [########------------]  40 %  4.0 MB of 9.9 MB  2.1 MB/s  ETA 2.8 s", at most
// `width` columns (the bar gives way first).  `total` 0 means unknown; `color` adds ANSI colours.
std::string ProgressLine(const std::string& label, int64_t done, int64_t total,
                         double bytes_per_second, int width, bool color);

// Draws the line on stderr, ten times a second at most, and removes it when it goes.  Silent where
// stderr is no terminal; without colour where NO_COLOR is set (no-color.org).
class ProgressBar {
 public:
  ProgressBar(std::string label, int64_t total);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `done` of the total are here.  The first call sets where the rate counts from; there is none
  // for the first fifth of a second.
  void Update(int64_t done, Nanos now = WallNow());

 private:
  std::string label_;
  int64_t total_;
  bool terminal_;
  bool color_;
  int64_t first_done_ = -1;
  Nanos started_ = 0;
  Nanos drawn_ = 0;
};

}  // namespace dtrain
