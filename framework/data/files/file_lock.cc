#include "framework/data/files/file_lock.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/process.h"
#include "framework/core/stop_request.h"
#include "framework/core/time.h"

namespace dtrain {
namespace {

constexpr auto kLookAgain = std::chrono::milliseconds(50);

std::string HintFor(const std::filesystem::path& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid == ::geteuid()) {
    return "name a folder that can be written with --root or XDG_CACHE_HOME";
  }
  return fmt::format(
      "another user (number {}) works there, or a process of that user was killed there: wait, or "
      "remove {} if none of that user's is running",
      status.st_uid, path.string());
}

LockFile Open(const std::filesystem::path& path) {
  try {
    return LockFile(path);
  } catch (const RunFileError& error) {
    throw DataError(error.what(), HintFor(path));
  }
}

// Returns the holder's description of itself, or a general one.
std::string HolderOf(const std::filesystem::path& path) {
  try {
    const std::string text = ReadFile(path);
    if (!text.empty() && text.size() < 1000) return text;
  } catch (const DataError&) {
  }
  return "another process";
}

void WriteHolder(int fd) {
  const std::string text = fmt::format("process {} on {}", ::getpid(), HostName());
  // This may fail: only messages of other processes use it.
  [[maybe_unused]] const bool written =
      ::ftruncate(fd, 0) == 0 && ::pwrite(fd, text.data(), text.size(), 0) > 0;
}

// Returns false if another process has the lock.  The holder of a file that others may open need not be one of this
// user's processes.
bool Take(LockFile& file) {
  LockFile::Answer answer = file.Take();
  while (answer == LockFile::Answer::kHeld && file.Replace()) answer = file.Take();
  if (answer != LockFile::Answer::kNoLocks) return answer == LockFile::Answer::kLocked;
  throw DataError(fmt::format("cannot lock {}: {}", file.path().string(), std::strerror(errno)),
                  "name a folder that can be written with --root or XDG_CACHE_HOME");
}

[[noreturn]] void ThrowTooLong(const std::filesystem::path& path, double seconds) {
  throw DataError(
      fmt::format("{} has had {} for more than {} s", HolderOf(path), path.string(), seconds),
      "check whether it still works; if not, end it and start again");
}

}  // namespace

FileLock::FileLock(const std::filesystem::path& path, const OnWait& on_wait, const Wait& wait)
    : file_(Open(path)) {
  const Nanos began = WallNow();
  Nanos say_at = began;
  for (Nanos now = began; !Take(file_); now = WallNow()) {
    EndIfStopped("waiting for " + path.string());
    if (now - began >= FromSeconds(wait.most_seconds)) ThrowTooLong(path, wait.most_seconds);
    if (now >= say_at) {
      on_wait(HolderOf(path));
      say_at = now + FromSeconds(wait.say_seconds);
    }
    std::this_thread::sleep_for(kLookAgain);
  }
  WriteHolder(file_.fd());
}

}  // namespace dtrain
