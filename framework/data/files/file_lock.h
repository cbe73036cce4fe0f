// FileLock: one process at a time.  flock(2) on a file of its own, so that the lock goes away with
// its owner, however that ends; the file stays.
#pragma once

#include <filesystem>
#include <functional>

namespace dtrain {

class FileLock {
 public:
  // Takes the lock; when another holds it, calls `on_wait` once and waits.  Throws DataError when
  // the file cannot be made or the file system knows no locks.
  FileLock(const std::filesystem::path& path, const std::function<void()>& on_wait);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_;
};

}  // namespace dtrain
