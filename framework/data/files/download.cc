#include "framework/data/files/download.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace dtrain {
namespace {

constexpr long kStallBytesPerSecond = 512;
constexpr long kPartialContent = 206;
constexpr long kRangeNotSatisfiable = 416;

struct FreeCurl {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};
using CurlPointer = std::unique_ptr<CURL, FreeCurl>;

CurlPointer NewCurl() {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  CurlPointer curl(ready == CURLE_OK ? curl_easy_init() : nullptr);
  if (!curl) throw DataError("libcurl cannot start");
  return curl;
}

// The .part file, open for appending.  A file that others may write to is replaced: they could change its content after
// it was verified.
class PartFile {
 public:
  explicit PartFile(const std::filesystem::path& path) : path_(path), fd_(Open(0)) {
    struct stat info = Look();
    if (!WhyNotTrusted(info).empty() && ::unlink(path_.c_str()) == 0) {
      ::close(fd_);
      fd_ = Open(O_EXCL);
      info = Look();
    }
    size_ = info.st_size;
  }
  ~PartFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  PartFile(const PartFile&) = delete;

  int64_t size() const { return size_; }

  bool Append(const char* data, size_t bytes) {
    while (bytes > 0) {
      const ssize_t written = ::write(fd_, data, bytes);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return Failed();
      data += written;
      bytes -= static_cast<size_t>(written);
      size_ += written;
    }
    return true;
  }

  bool Empty() {
    if (::ftruncate(fd_, 0) != 0) return Failed();
    size_ = 0;
    return true;
  }

  // Throws the error of Append or Empty, if one failed.
  void CheckWritten() const {
    if (error_ == 0) return;
    errno = error_;
    Throw();
  }

 private:
  int Open(int how) const {
    constexpr int kAppend = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    return ::open(path_.c_str(), kAppend | how, 0644);
  }
  struct stat Look() {
    struct stat info = {};
    if (fd_ < 0 || ::fstat(fd_, &info) != 0) Throw();
    if (S_ISREG(info.st_mode)) return info;
    ::close(fd_);
    throw DataError(fmt::format("{} is not a regular file", path_.string()), "remove it");
  }

  bool Failed() {
    error_ = errno;
    return false;
  }
  [[noreturn]] void Throw() const {
    throw DataError(fmt::format("cannot write {}: {}", path_.string(), std::strerror(errno)),
                    "free some space, or name another folder with --root or XDG_CACHE_HOME");
  }

  std::filesystem::path path_;
  int fd_;
  int64_t size_ = 0;
  int error_ = 0;
};

class Transfer {
 public:
  Transfer(const std::string& url, const std::filesystem::path& part, const std::string& label,
           const DownloadLimits& limits)
      : part_(part), bar_(label, limits.bytes), limits_(limits), resumed_at_(part_.size()) {
    CURL* curl = curl_.get();
    curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, static_cast<long>(limits.connect_seconds));
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, kStallBytesPerSecond);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(limits.stall_seconds));
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason_.data());
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Transfer::OnData);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
    if (!limits_.socket.empty()) {
      curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, limits_.socket.c_str());
    }
    // Sets the range explicitly: with CURLOPT_RESUME_FROM libcurl gives up on servers that ignore ranges.
    if (resumed_at_ > 0) {
      curl_easy_setopt(curl, CURLOPT_RANGE, fmt::format("{}-", resumed_at_).c_str());
    }
  }
  Transfer(const Transfer&) = delete;

  DownloadResult Run() {
    const CURLcode code = curl_easy_perform(curl_.get());
    part_.CheckWritten();
    return ResultOf(code);
  }

 private:
  static size_t OnData(char* data, size_t size, size_t count, void* self) {
    const size_t bytes = size * count;
    return static_cast<Transfer*>(self)->Take(data, bytes) ? bytes : 0;
  }

  bool Take(const char* data, size_t bytes) {
    if (!any_received_ && resumed_at_ > 0 && Status() != kPartialContent && !part_.Empty()) {
      return false;
    }
    if (limits_.bytes > 0 && part_.size() + static_cast<int64_t>(bytes) > limits_.bytes) {
      too_long_ = true;
      part_.Empty();  // it belongs to another file
      return false;
    }
    any_received_ = true;
    if (!part_.Append(data, bytes)) return false;
    bar_.Update(part_.size());
    return true;
  }

  long Status() {
    long status = 0;
    curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &status);
    return status;
  }

  DownloadResult ResultOf(CURLcode code) {
    if (too_long_) {
      return Failed(
          false, fmt::format("the file there is longer than the {} bytes expected", limits_.bytes));
    }
    if (code == CURLE_OK) return {};
    if (code == CURLE_HTTP_RETURNED_ERROR) {
      // The server's file is shorter than the part, or the server does not support ranges: start again.
      const bool anew = Status() == kRangeNotSatisfiable && resumed_at_ > 0 && part_.Empty();
      return Failed(anew, fmt::format("HTTP {}", Status()));
    }
    const std::string have = limits_.bytes > 0
                                 ? fmt::format("{} of {} bytes here", part_.size(), limits_.bytes)
                                 : fmt::format("{} bytes here", part_.size());
    if (code == CURLE_OPERATION_TIMEDOUT && Status() > 0) {
      return Failed(any_received_, fmt::format("the server stalled: nothing came for {} s ({})",
                                               limits_.stall_seconds, have));
    }
    const std::string said = reason_.data();
    const std::string reason = said.empty() ? curl_easy_strerror(code) : said;
    return Failed(any_received_, fmt::format("{} ({})", reason, have));
  }

  static DownloadResult Failed(bool again, const std::string& message) {
    return {false, again, message};
  }

  CurlPointer curl_ = NewCurl();
  PartFile part_;
  ProgressBar bar_;
  DownloadLimits limits_;
  int64_t resumed_at_;
  bool any_received_ = false;
  bool too_long_ = false;
  std::array<char, CURL_ERROR_SIZE> reason_{};
};

}  // namespace

DownloadResult Download(const std::string& url, const std::filesystem::path& part,
                        const std::string& label, const DownloadLimits& limits) {
  return Transfer(url, part, label, limits).Run();
}

std::filesystem::path PathOfFileUrl(const std::string& url) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parts(curl_url(), &curl_url_cleanup);
  char* path = nullptr;
  if (!parts || curl_url_set(parts.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK ||
      curl_url_get(parts.get(), CURLUPART_PATH, &path, CURLU_URLDECODE) != CURLUE_OK) {
    throw DataError(fmt::format("'{}' names no folder of this machine", url),
                    "as in file:///data, or the folder alone: /data");
  }
  const std::unique_ptr<char, decltype(&curl_free)> free(path, &curl_free);
  return path;
}

}  // namespace dtrain
