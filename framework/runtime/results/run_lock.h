// RunLock: one run a folder.
//
// <folder>/run.lock names the process that writes there: host, process number, and since when.  The
// lock is flock(2) on that file: it ends with its process, however that ends, and a file that a
// killed run has left is no obstacle.
//
// Where the file system has no locks, the named process is looked up: on this host it holds the
// folder while it exists; on another host it is assumed to exist, unless it belongs to the Slurm
// job that this process belongs to, which has then been started again.  Two runs that start there
// at the same moment can miss each other.
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
  // RunFileError when the file cannot be written.  `flock` is there for tests.
  explicit RunLock(const std::filesystem::path& folder, Flock flock = ::flock);
  ~RunLock();  // removes the file
  RunLock(RunLock&& other) noexcept
      : path_(std::move(other.path_)),
        fd_(std::exchange(other.fd_, -1)),
        made_folder_(other.made_folder_) {}
  RunLock& operator=(RunLock&&) = delete;

  // The folder was made for this run: it goes with the lock where nothing has been written into it.
  void MadeFolder() { made_folder_ = true; }

 private:
  std::filesystem::path path_;
  int fd_;
  bool made_folder_ = false;
};

// Whether a run writes into this folder, as far as this host can tell: one that was killed on another host
// counts until its folder is taken again.  Takes no lock.
bool RunGoesOn(const std::filesystem::path& folder);

// Throws the UsageError of RunLock where RunGoesOn says so.
void RefuseRunThatGoesOn(const std::filesystem::path& folder);

// Makes a folder that nobody had before: `wanted`, or where that exists wanted-2, wanted-3, ...
// Returns its path.  For names made of the time, which runs that start together share.
std::string MakeOwnFolder(const std::string& wanted);
// What that would be called now.
std::string OwnFolderName(const std::string& wanted);

}  // namespace dtrain
