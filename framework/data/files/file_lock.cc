#include "framework/data/files/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "framework/core/error.h"

namespace dtrain {
namespace {

int LockAgain(int fd, int how) {
  int result;
  do result = ::flock(fd, how);
  while (result != 0 && errno == EINTR);
  return result;
}

}  // namespace

FileLock::FileLock(const std::filesystem::path& path, const std::function<void()>& on_wait)
    : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644)) {
  int result = fd_ < 0 ? -1 : LockAgain(fd_, LOCK_EX | LOCK_NB);
  if (result != 0 && errno == EWOULDBLOCK) {
    on_wait();
    result = LockAgain(fd_, LOCK_EX);
  }
  if (result == 0) return;
  const int error = errno;
  ::close(fd_);  // of none: nothing
  throw DataError(fmt::format("cannot lock {}: {}", path.string(), std::strerror(error)),
                  "name a folder that can be written with --root or XDG_CACHE_HOME");
}

FileLock::~FileLock() { ::close(fd_); }

}  // namespace dtrain
