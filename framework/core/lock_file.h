// LockFile is flock(2) on a file that only its owner can open.
//
// flock needs no right but to open the file, so a user who can only read a lock file could keep its owner waiting.  A
// lock file is therefore created with mode 0600.  A lock file that others may open, as versions before December 2026
// made them, is replaced by a new file: another user may have opened the old one already, and a lock on that one then
// has no effect.
#pragma once

#include <sys/file.h>

#include <filesystem>
#include <utility>

namespace dtrain {

class LockFile {
 public:
  using Flock = int (*)(int, int);

  // Opens or creates the file.  Tests replace `flock`.  Throws RunFileError "cannot open PATH: reason", as do the other
  // members that open it.
  explicit LockFile(std::filesystem::path path, Flock flock = ::flock);
  // Releases the lock; the file stays, unless Remove was called while it was locked.
  ~LockFile();
  LockFile(LockFile&& other) noexcept;
  LockFile& operator=(LockFile&&) = delete;

  enum class Answer { kLocked, kHeld, kNoLocks };
  // Takes the lock, without waiting.  kHeld: another process has it; kNoLocks: the file system does not support locks
  // (see `errno`).  A locked file is the one at path(): if others may open the existing one, a new one is locked
  // instead.
  Answer Take();
  // Replaces a file that others may open by a new one, even if the old one is locked.  Returns false if only the owner
  // may open it, if a new file would be no better or cannot be created, and on a second call.
  bool Replace();
  // True while path() still names the open file; its holder removes the name when it ends.
  bool IsThere() const;
  void OpenAgain();  // opens the file that has the name now
  // Removes the file if path() still names it.  REQUIRES: it is locked.
  void Remove();

  int fd() const { return fd_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  Flock flock_;
  int fd_ = -1;
  bool replaced_ = false;
};

}  // namespace dtrain
