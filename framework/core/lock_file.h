// LockFile: flock(2) on a file that nobody but its owner can open.
//
// flock needs no right but to open, so who can only read a lock file can keep its owner waiting.  A lock file is
// therefore made with mode 0600.  One that others may open, as programs before December 2026 made them, is replaced
// by a new file: somebody may have opened the old one already, and what he locks is then nobody's any more.
#pragma once

#include <sys/file.h>

#include <filesystem>
#include <utility>

namespace dtrain {

class LockFile {
 public:
  using Flock = int (*)(int, int);

  // Opens the file, or makes it.  `flock` is there for tests.  Throws RunFileError
  // "cannot open PATH: reason", as the others do that open it.
  explicit LockFile(std::filesystem::path path, Flock flock = ::flock);
  ~LockFile();  // ends the lock; the file stays, unless Remove was called while it was locked
  LockFile(LockFile&& other) noexcept;
  LockFile& operator=(LockFile&&) = delete;

  enum class Answer { kLocked, kHeld, kNoLocks };
  // Takes the lock, without waiting.  kHeld: another process has it; kNoLocks: the file system has none (see `errno`).
  // The file that is locked has the name; where others may open it, a new one is locked instead.
  Answer Take();
  // Puts a new file in the place of one that others may open, whoever holds that.  False where nobody else may, where a
  // new one would be no better or cannot be made, and the second time.
  bool Replace();
  // True while the file has its name, which its holder takes away at the end.
  bool IsThere() const;
  void OpenAgain();  // opens what has the name now
  // Takes the name away, if it is still this file's.  REQUIRES: it is locked.
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
