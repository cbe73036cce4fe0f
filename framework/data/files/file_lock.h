// FileLock: one process of this user at a time (core/lock_file.h).  The lock goes away with its owner, however that
// ends; the file stays, and says who that is.
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

 private:
  LockFile file_;
};

}  // namespace dtrain
