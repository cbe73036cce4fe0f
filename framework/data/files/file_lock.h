// FileLock: one process at a time (core/lock_file.h).  The lock goes away with its owner, however that ends.  The file
// says who that is.  Only its owner's user can open it, so it is removed at the end: another user may be the next.  One
// that a killed process has left keeps other users out until it is removed, and the error says so.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "framework/core/lock_file.h"

namespace dtrain {

class FileLock {
 public:
  // Called at once when another process has the lock, and every `say_seconds` from then on.
  using OnWait = std::function<void(const std::string& holder)>;  // "process 12 on host"
  struct Wait {
    double most_seconds = 600;
    double say_seconds = 15;
  };

  // Takes the lock; when another holds it, waits.  Throws DataError when the file cannot be made, the file system knows
  // no locks or the wait was too long, and StoppedError when this process was asked to stop (core/stop_request.h).
  FileLock(const std::filesystem::path& path, const OnWait& on_wait, const Wait& wait);
  // A process that waits for this file notices that it is gone (LockFile::Take).
  ~FileLock() { file_.Remove(); }
  FileLock(const FileLock&) = delete;

 private:
  LockFile file_;
};

}  // namespace dtrain
