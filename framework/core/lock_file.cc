#include "framework/core/lock_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace dtrain {
namespace {

// True if other users may open the file, so that a lock on it proves nothing.
bool OthersMayOpen(int fd) {
  struct stat status = {};
  if (::fstat(fd, &status) != 0) return false;
  return status.st_uid != ::geteuid() || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0;
}

}  // namespace

LockFile::LockFile(std::filesystem::path path, Flock flock)
    : path_(std::move(path)), flock_(flock) {
  OpenAgain();
}

LockFile::~LockFile() {
  if (fd_ >= 0) ::close(fd_);
}

LockFile::LockFile(LockFile&& other) noexcept
    : path_(std::move(other.path_)),
      flock_(other.flock_),
      fd_(std::exchange(other.fd_, -1)),
      replaced_(other.replaced_) {}

void LockFile::OpenAgain() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd_ < 0) {
    throw RunFileError(fmt::format("cannot open {}: {}", path_.string(), std::strerror(errno)));
  }
  struct stat status = {};
  if (::fstat(fd_, &status) != 0 || S_ISREG(status.st_mode)) return;
  ::close(std::exchange(fd_, -1));
  throw RunFileError(WhyNoFile(path_, fmt::format("{} is not a regular file", path_.string())),
                     "remove it");
}

LockFile::Answer LockFile::Take() {
  for (;;) {
    if (flock_(fd_, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      return errno == EWOULDBLOCK ? Answer::kHeld : Answer::kNoLocks;
    }
    if (Replace()) continue;
    if (IsThere()) return Answer::kLocked;
    OpenAgain();  // its holder has just removed it
  }
}

bool LockFile::IsThere() const {
  struct stat opened = {}, named = {};
  return ::fstat(fd_, &opened) == 0 && ::stat(path_.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

// Two processes of the same user that replace the file at the same moment could miss each other's new file: rename()
// cannot be made conditional on the file that it replaces.  That can happen at most once, on the first start after an
// update.
bool LockFile::Replace() {
  if (replaced_ || !OthersMayOpen(fd_)) return false;
  replaced_ = true;
  const std::string made = fmt::format("{}.{}", path_.string(), ::getpid());
  const int fd = ::open(made.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  // Some file systems give all files one owner or one mode.
  const bool is_better = !OthersMayOpen(fd);
  if (is_better && IsThere() && ::rename(made.c_str(), path_.c_str()) == 0) {
    ::close(std::exchange(fd_, fd));
    return true;
  }
  ::close(fd);
  ::unlink(made.c_str());
  if (IsThere()) return false;
  OpenAgain();  // another process has replaced it
  return true;
}

void LockFile::Remove() {
  if (IsThere()) ::unlink(path_.c_str());
}

}  // namespace dtrain
