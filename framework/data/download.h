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
  enum class End {
    kWhole,    // the server sent all it meant to
    kBroken,   // the connection broke or stalled: taking it up again may help
    kRefused,  // the server has no such file, or a larger one: try another
  };
  End end = End::kWhole;
  std::string
      message;  // why not kWhole: "HTTP 404", "nothing came for 30 s (1000 of 9912422 bytes)"
  int64_t new_bytes = 0;  // that this transfer added
};

// Appends the rest of `url` to `part`, or writes it anew when the server ignores ranges.  `label`
// names it on the progress bar.  Throws DataError when `part` cannot be written.
DownloadResult Download(const std::string& url, const std::filesystem::path& part,
                        const std::string& label, const DownloadLimits& limits);

}  // namespace dtrain
