#include "framework/data/files/unpack_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"
#include "framework/core/stop_request.h"
#include "framework/core/text.h"
#include "framework/data/dataset.h"
#include "framework/data/files/file_lock.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr size_t kNameDigits = 16;

std::string HashOf(UnpackCache::Parts parts) {
  Sha256 hash;
  for (const std::span<uint8_t>& part : parts) hash.Update(part.data(), part.size());
  return hash.HexDigest();
}

uintmax_t BytesOf(UnpackCache::Parts parts) {
  uintmax_t bytes = 0;
  for (const std::span<uint8_t>& part : parts) bytes += part.size();
  return bytes;
}

// The name depends on the archive's path, size and time, and on the sizes of the parts.
std::string NameOf(const fs::path& archive, const std::string& kind, UnpackCache::Parts parts) {
  std::string info =
      fmt::format("{}\n{}\n{}\n", fs::absolute(archive).string(), fs::file_size(archive),
                  fs::last_write_time(archive).time_since_epoch().count());
  for (const std::span<uint8_t>& part : parts) info += fmt::format("{}\n", part.size());
  return fmt::format("{}-{}.bin", kind, Sha256::Of(info).substr(0, kNameDigits));
}

// True for a name by NameOf with this ending: ".bin", or ".part" after a process number.
bool IsNameOf(const std::string& kind, const std::string& ending, std::string name) {
  if (!name.starts_with(kind + "-") || !name.ends_with(ending)) return false;
  name = name.substr(kind.size() + 1, name.size() - kind.size() - 1 - ending.size());
  const size_t digits = std::min(name.find_first_not_of("0123456789abcdef"), name.size());
  if (ending == ".bin") return digits == kNameDigits && digits == name.size();
  const size_t process = std::string_view(".bin.").size() + kNameDigits;
  return digits == kNameDigits && name.compare(digits, 5, ".bin.") == 0 && name.size() > process &&
         name.find_first_not_of("0123456789", process) == std::string::npos;
}

// An open cache file; its descriptor is -1 if the file is missing.
class Kept {
 public:
  explicit Kept(const fs::path& file)
      : fd_(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)) {
    if (fd_ >= 0 && ::fstat(fd_, &status_) != 0) status_ = {};
  }
  ~Kept() {
    if (fd_ >= 0) ::close(fd_);
  }
  Kept(const Kept&) = delete;

  bool IsThere() const { return fd_ >= 0; }
  bool IsRegular() const { return S_ISREG(status_.st_mode); }
  uintmax_t bytes() const { return static_cast<uintmax_t>(status_.st_size); }
  std::string WhyNotTrusted() const { return dtrain::WhyNotTrusted(status_); }

  bool ReadExactly(void* to, size_t bytes) const {
    auto* at = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t got = ::read(fd_, at, bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      at += got;
      bytes -= static_cast<size_t>(got);
    }
    return true;
  }

 private:
  int fd_;
  struct stat status_ = {};
};

}  // namespace

UnpackCache::UnpackCache(fs::path folder, Say say)
    : folder_(std::move(folder)), say_(std::move(say)) {}

fs::path UnpackCache::UsualFolder() {
  try {
    return FetchFolder("unpacked", "");
  } catch (const DataError&) {
    return {};
  }
}

bool UnpackCache::Fill(const fs::path& archive, const std::string& kind, Parts parts,
                       const std::function<bool()>& unpack) const {
  fs::path file;
  std::unique_ptr<FileLock> lock;
  try {
    if (!folder_.empty() && IsTrusted(archive)) {
      file = folder_ / NameOf(archive, kind, parts);
      if (Load(file, parts)) return true;
      MakePrivateFolder(folder_);
      const auto on_wait = [&](const std::string& holder) {
        Info(fmt::format("{} is unpacking {}; waiting for it", holder, archive.string()));
      };
      lock = std::make_unique<FileLock>(folder_ / (kind + ".lock"), on_wait, FileLock::Wait{});
    }
  } catch (const StoppedError&) {
    throw;
  } catch (const std::exception& error) {
    Warn(fmt::format("nothing can be kept in {}, so {} is unpacked at every start: {}",
                     folder_.string(), archive.string(), error.what()));
  }
  if (lock) return FillLocked(archive, file, kind, parts, unpack);
  Info(fmt::format("unpacking {}", archive.string()));
  return unpack();
}

bool UnpackCache::IsTrusted(const fs::path& archive) const {
  const std::string why = WhyNotTrusted(folder_);
  if (why.empty()) return true;
  Warn(fmt::format(
      "{0} {1}, so it is not used and {2} is unpacked at every start: `chmod go-w {3}` where it is "
      "yours, else name a folder of your own by XDG_CACHE_HOME",
      folder_.string(), why, archive.string(), ShellWord(folder_.string())));
  return false;
}

bool UnpackCache::FillLocked(const fs::path& archive, const fs::path& file, const std::string& kind,
                             Parts parts, const std::function<bool()>& unpack) const {
  if (Load(file, parts)) return true;  // written while this process waited
  Info(fmt::format("unpacking {}; kept in {} for the next time", archive.string(),
                   folder_.string()));
  if (!unpack()) return false;
  try {
    RemoveOthers(file, kind, ".part");
    Keep(file, parts);
    RemoveOthers(file, kind, ".bin");
  } catch (const std::exception& error) {
    Warn(fmt::format("what {} unpacks to is not kept: {}", archive.string(), error.what()));
  }
  return true;
}

bool UnpackCache::Load(const fs::path& file, Parts parts) const {
  constexpr size_t kHashDigits = 64;
  const Kept kept(file);
  if (!kept.IsThere()) return false;
  if (const std::string why = kept.WhyNotTrusted(); !why.empty()) {
    Info(fmt::format("{} {}; it is made again", file.string(), why));
    return false;
  }
  std::string hash(kHashDigits, '\0');
  bool whole = kept.IsRegular() && kept.bytes() == BytesOf(parts) + kHashDigits;
  for (const std::span<uint8_t>& part : parts) {
    whole = whole && kept.ReadExactly(part.data(), part.size());
  }
  whole = whole && kept.ReadExactly(hash.data(), kHashDigits);
  if (whole && HashOf(parts) == hash) return true;
  Info(fmt::format("{} is damaged; it is made again", file.string()));
  return false;
}

void UnpackCache::Keep(const fs::path& file, Parts parts) const {
  NewFile out(file, file.string() + fmt::format(".{}.part", ::getpid()));
  for (const std::span<uint8_t>& part : parts) {
    out.Write({reinterpret_cast<const char*>(part.data()), part.size()});
  }
  out.Write(HashOf(parts));
  out.Publish();
}

// Removes files of other archives of this kind (.bin), which this one replaces, or parts of a killed process (.part).
// REQUIRES: this process has the lock.
void UnpackCache::RemoveOthers(const fs::path& file, const std::string& kind,
                               const std::string& ending) const {
  std::error_code error;
  std::vector<fs::path> others;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (IsNameOf(kind, ending, name) && it->path() != file) {
      others.push_back(it->path());
    }
  }
  for (const fs::path& other : others) fs::remove(other, error);
}

}  // namespace dtrain
