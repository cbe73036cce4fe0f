// One HTTP transfer into a file (libcurl), resumable.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace dtrain {

struct DownloadLimits {
  int64_t bytes = 0;  // the size the content must have; 0: not known
  int stall_seconds = 30;
  int connect_seconds = 20;
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

}  // namespace dtrain
