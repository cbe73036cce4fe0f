// One HTTP transfer into a file (libcurl), resumable, and its progress (progress.cc).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "framework/core/progress_display.h"
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

// How far a transfer is, on the status line or in the log (core/progress_display.h), gone when it goes:
// "train-images.gz  ######--------  40 %  4.0 MB of 9.9 MB  2.1 MB/s  2.8 s left".
class ProgressBar {
 public:
  // `total` 0 means unknown.
  ProgressBar(std::string label, int64_t total, ProgressDisplay display = {});
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `done` of the total are here.  The first call sets where the rate counts from; there is none
  // for the first fifth of a second.
  void Update(int64_t done, Nanos now = WallNow());

 private:
  ProgressDisplay::Parts PartsOf(int64_t done, double bytes_per_second) const;

  std::string label_;
  int64_t total_;
  ProgressDisplay display_;
  int64_t first_done_ = -1;
  Nanos started_ = 0;
};

}  // namespace dtrain
