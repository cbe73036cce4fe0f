// FileLock admits one process at a time (core/lock_file.h).  The lock ends with its owner, however that ends.  The file
// names the owner.  Only the owner's user can open the file, so it is removed at the end: another user may be the next.
// A file that a killed process has left keeps other users out until it is removed, and the error says so.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "framework/core/lock_file.h"

namespace dtrain {

class FileLock {
 public:
  // It is called at once if another process has the lock, and then every `say_seconds`.
  using OnWait = std::function<void(const std::string& holder)>;  // "process 12 on host"
  struct Wait {
    double most_seconds = 600;
    double say_seconds = 15;
  };

  // Takes the lock, waiting if necessary.  Throws DataError if the file cannot be created, the file system has no locks
  // or the wait was too long, and StoppedError after a stop request (core/stop_request.h).
  FileLock(const std::filesystem::path& path, const OnWait& on_wait, const Wait& wait);
  // A process that waits for this file notices its removal (LockFile::Take).
  ~FileLock() { file_.Remove(); }
  FileLock(const FileLock&) = delete;

 private:
  LockFile file_;
};

}  // namespace dtrain
