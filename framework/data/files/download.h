// One HTTP transfer into a file (libcurl), resumable, and the progress bar that it draws
// (progress.cc).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "framework/core/time.h"

namespace dtrain {

struct DownloadLimits {
  int64_t bytes = 0;  // the size the content must have; 0: not known
  int stall_seconds = 30;
  int connect_seconds = 20;
  // Instead of every server: a Unix socket that listens here (tests).
  std::filesystem::path socket = {};
};

struct DownloadResult {
  bool whole = true;    // the server sent all it meant to
  bool again = false;   // it broke off after bringing something: taking it up again may help
  std::string message;  // why not whole: "HTTP 404", "the server stalled: nothing came for 30 s"
};

// Appends the rest of `url` to `part`, or writes it anew when the server ignores ranges.  `label`
// names it on the progress bar.  Throws DataError when `part` cannot be written.
DownloadResult Download(const std::string& url, const std::filesystem::path& part,
                        const std::string& label, const DownloadLimits& limits);

// The line of a progress bar: bytes, rate and time left.
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
