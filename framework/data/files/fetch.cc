#include "framework/data/files/fetch.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/sha256.h"
#include "framework/core/stop_request.h"
#include "framework/core/text.h"
#include "framework/data/files/download.h"
#include "framework/data/files/file_lock.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr int kMaxTries = 20;              // tries of one URL, each of which brought some bytes
constexpr double kMostWaitSeconds = 3600;  // waiting for another process's download

std::string HashOf(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> block(size_t{1} << 20);
  Sha256 hash;
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
    EndIfStopped("verifying " + path.string());
    hash.Update(block.data(), static_cast<size_t>(in.gcount()));
  }
  return hash.HexDigest();
}

void MakeDataFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return;
  throw DataError(fmt::format("cannot create folder {}: {}", folder.string(), error.message()),
                  "name a folder that can be written with --root or XDG_CACHE_HOME");
}

bool IsPath(const std::string& url) { return url.starts_with('/'); }

// Returns the address for display, without the password in "https://user:password@host/".
std::string Shown(const std::string& url) {
  if (IsPath(url)) return url;
  const size_t scheme = url.find("://");
  const size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
  const size_t host_end = std::min(url.find_first_of("/?#", begin), url.size());
  const size_t colon = url.find(':', begin);
  if (colon >= host_end) return url;
  size_t at = url.substr(0, host_end).rfind('@');
  if (at == std::string::npos || at < begin) {
    if (url.find_first_not_of("0123456789", colon + 1) >= host_end) return url;  // a port
    at = url.rfind('@');  // there is a '/', '?' or '#' in the password
  }
  if (at == std::string::npos || colon > at) return url;
  return url.substr(0, colon) + ":***" + url.substr(at);
}

void SayHere(const RemoteFile& file, const FetchOptions& options) {
  options.say(fmt::format("{}: already here", file.name));
}

// Fetch downloads one file into the folder.
class Fetch {
 public:
  Fetch(const RemoteFile& file, const fs::path& folder, const FetchOptions& options)
      : file_(file),
        path_(folder / file.name),
        part_(path_.string() + ".part"),
        options_(options) {}

  void Run() {
    const std::string wrong = CheckFile(file_, path_);
    if (wrong.empty()) return SayHere(file_, options_);
    if (wrong != "missing") {
      options_.say(fmt::format("{}: {}; fetching it again", file_.name, wrong));
    }
    if (PartIsComplete() && Publish().empty()) return;
    for (const std::string& url : file_.urls) {
      const std::string problem = Try(url);
      if (problem.empty()) return;
      options_.say(fmt::format("{}: {}: {}", file_.name, Shown(url), problem));
      problems_ += fmt::format("\n  {}: {}", Shown(url), problem);
    }
    throw DataError(
        fmt::format("cannot fetch {}{}", file_.name,
                    problems_.empty() ? ": no address is known for it" : ":" + problems_),
        fmt::format("put {} into {} by other means, take it from another server or a folder "
                    "(--from), or try again later{}",
                    file_.name, path_.parent_path().string(),
                    PartBytes() > 0 ? ": what came so far is kept" : ""));
  }

 private:
  // Returns "" on success, else the reason.
  std::string Try(const std::string& url) {
    if (IsPath(url)) return Copy(url);
    options_.say(fmt::format("{}: {} from {}", file_.name, HumanBytes(file_.bytes), Shown(url)));
    const DownloadLimits limits{file_.bytes, options_.stall_seconds, options_.connect_seconds};
    for (int tries = 1;; ++tries) {
      const DownloadResult result = Download(url, part_, file_.name, limits);
      if (result.whole || PartIsComplete()) return Publish();
      if (!result.again || tries == kMaxTries) return result.message;
      options_.say(fmt::format("{}: {}; {}", file_.name, result.message,
                               PartBytes() > 0 ? "going on from there" : "beginning anew"));
      std::this_thread::sleep_for(std::chrono::seconds(options_.retry_seconds));
    }
  }

  // Returns "" on success, else the reason.  The part is removed even if this throws.
  std::string Copy(const fs::path& from) {
    std::error_code ignored;
    if (!fs::is_regular_file(from, ignored)) return WhyNoFile(from, "missing");
    std::ifstream in(from, std::ios::binary);
    if (!in) return "cannot be read";
    NewFile copy(path_, part_);
    std::vector<char> block(size_t{1} << 20);
    while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
      EndIfStopped("copying " + from.string());
      copy.Write({block.data(), static_cast<size_t>(in.gcount())});
    }
    if (in.bad()) return "cannot be read to its end";
    const std::string wrong = CheckFile(file_, part_);
    if (!wrong.empty()) return wrong;
    copy.Publish();
    SayDone();
    return "";
  }

  // Renames the part if it is correct, else removes it.
  std::string Publish() {
    const std::string wrong = CheckFile(file_, part_);
    if (!wrong.empty()) {
      std::error_code ignored;
      fs::remove(part_, ignored);
      return wrong + "; removed";
    }
    PublishDurably(part_, path_);
    SayDone();
    return "";
  }

  void SayDone() const {
    options_.say(fmt::format("{}: {} in {}", file_.name,
                             HumanBytes(static_cast<double>(fs::file_size(path_))),
                             path_.parent_path().string()));
  }

  int64_t PartBytes() const {
    std::error_code error;
    const auto bytes = fs::file_size(part_, error);
    return error ? 0 : static_cast<int64_t>(bytes);
  }

  // True if no more bytes are needed: an earlier fetch ended between the last byte and the rename, or a server promised
  // more than the file has.
  bool PartIsComplete() const { return file_.bytes > 0 && PartBytes() >= file_.bytes; }

  const RemoteFile& file_;
  fs::path path_;
  fs::path part_;
  const FetchOptions& options_;
  std::string problems_;
};

}  // namespace

std::string CheckFile(const RemoteFile& file, const fs::path& path) {
  std::error_code error;
  const auto bytes = static_cast<int64_t>(fs::file_size(path, error));
  if (error) return "missing";
  if (file.bytes > 0 && bytes != file.bytes) {
    return fmt::format("{} bytes, expected {}", bytes, file.bytes);
  }
  if (file.sha256.empty()) return "";
  const std::string hash = HashOf(path);
  if (hash == file.sha256) return "";
  return fmt::format("SHA-256 is {}, expected {}", hash, file.sha256);
}

void FetchFiles(const std::vector<RemoteFile>& files, const fs::path& folder,
                const FetchOptions& options) {
  FetchOptions own = options;
  if (!own.say) own.say = [](const std::string& line) { log::Info("{}", line); };
  MakeDataFolder(folder);
  std::vector<const RemoteFile*> wanted;
  for (const RemoteFile& file : files) {
    if (CheckFile(file, folder / file.name).empty()) {
      SayHere(file, own);
    } else {
      wanted.push_back(&file);
    }
  }
  if (wanted.empty()) return;
  const FileLock lock(
      folder / ".lock",
      [&](const std::string& holder) {
        own.say(fmt::format("{} is fetching into {}; waiting for it", holder, folder.string()));
      },
      {.most_seconds = kMostWaitSeconds});
  for (const RemoteFile* file : wanted) {
    MakeDataFolder((folder / file->name).parent_path());
    Fetch(*file, folder, own).Run();
  }
}

}  // namespace dtrain
