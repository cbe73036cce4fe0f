// RunLock: one run a folder.
//
// <folder>/run.lock names the process that writes there: host, pid, and since when.  What locks is
// flock(2) on that file, so a lock ends with its process however that ends, and a file that a
// killed run left is no obstacle.  Where the file system knows no locks, the holder is looked up:
// on this host a process that is gone holds nothing, one of another host is taken to live.  (Two
// runs that start there in the same moment may then miss each other; nothing better is to be had
// without locks.)
#pragma once

#include <sys/file.h>

#include <filesystem>
#include <string>
#include <utility>

namespace dtrain {

class RunLock {
 public:
  using Flock = int (*)(int, int);

  // The folder must exist.  Throws UsageError, naming the holder, when another run has it;
  // CheckpointError when the file cannot be written.  `flock` is there for tests.
  explicit RunLock(const std::filesystem::path& folder, Flock flock = ::flock);
  ~RunLock();  // removes the file
  RunLock(RunLock&& other) noexcept
      : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  RunLock& operator=(RunLock&&) = delete;

 private:
  std::filesystem::path path_;
  int fd_;
};

// Makes a folder that nobody had before: `wanted`, or where that exists wanted-2, wanted-3, ...
// Returns its path.  For names made of the time, which runs that start together share.
std::string MakeOwnFolder(const std::string& wanted);

}  // namespace dtrain
