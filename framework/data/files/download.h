// Downloads a file over HTTP (libcurl), resumes an incomplete one, and shows a progress bar (progress.cc).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "framework/core/progress_display.h"
#include "framework/core/time.h"

namespace dtrain {

struct DownloadLimits {
  int64_t bytes = 0;  // required size of the content; 0: unknown
  int stall_seconds = 30;
  int connect_seconds = 20;
  // In tests, this Unix socket replaces every server.
  std::filesystem::path socket = {};
};

struct DownloadResult {
  bool whole = true;   // the server sent everything
  bool again = false;  // it broke off after some bytes: resuming may help
  // Gives the reason if not whole: "HTTP 404", "the server stalled: nothing came for 30 s".
  std::string message;
};

// Appends the rest of `url` to `part`, or writes it from the start if the server ignores ranges.  `label` is its name
// on the progress bar.  Throws DataError if `part` cannot be written.
DownloadResult Download(const std::string& url, const std::filesystem::path& part,
                        const std::string& label, const DownloadLimits& limits);

// Returns the path in "file:///data/my%20sets".  Throws DataError for an address with another host, or none at all.
std::filesystem::path PathOfFileUrl(const std::string& url);

// Shows the progress of a transfer while it lives, on the status line or in the log (core/progress_display.h):
// "train-images.gz  ######--------  40 %  4.0 MB of 9.9 MB  2.1 MB/s  2.8 s left".
class ProgressBar {
 public:
  // `total` is 0 if it is unknown.
  ProgressBar(std::string label, int64_t total, ProgressDisplay display = {});
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `done` of the total bytes have arrived.  The rate is measured from the first call on, and shown after 0.2 s.
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
