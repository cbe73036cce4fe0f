// RunLock lets one run at a time write into a folder.
//
// <folder>/run.lock names the process that writes there: host, process number, and since when.  The
// lock is flock(2) on that file: it ends with its process, however that ends, and a file that a
// killed run has left is no obstacle.  Nobody else can open it, and so hold the run up (core/lock_file.h); of a file
// that others may open a lock counts only while the process that it names lives.
//
// Where the file system has no locks, the named process is looked up: on this host it holds the
// folder while it exists; on another host it is assumed to exist, unless it belongs to the Slurm
// job that this process belongs to, which has then been started again.  Two runs that start there
// at the same moment can miss each other.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "framework/core/lock_file.h"

namespace dtrain {

class RunLock {
 public:
  // The folder must exist.  Throws UsageError, naming the holder, when another run has it, and when a run.lock that no
  // run has written lies there; RunFileError when the file cannot be written.  `flock` is there for tests.
  explicit RunLock(const std::filesystem::path& folder, LockFile::Flock flock = ::flock);
  ~RunLock();  // removes the file
  RunLock(RunLock&& other) noexcept = default;
  RunLock& operator=(RunLock&&) = delete;

  // The folder was made for this run: it goes with the lock where nothing has been written into it.
  void MadeFolder() { made_folder_ = true; }

 private:
  LockFile file_;
  bool made_folder_ = false;
};

// True where a run writes into this folder, as far as this process can tell: one that was killed on another host, or
// another user's, counts until its folder is taken again.  Takes no lock.
bool RunGoesOn(const std::filesystem::path& folder);

// Throws the UsageError of RunLock where RunGoesOn says so.
void RefuseRunThatGoesOn(const std::filesystem::path& folder);

// Makes a folder that nobody had before: `wanted`, or where that exists wanted-2, wanted-3, ...
// Returns its path.  For names made of the time, which runs that start together share.
std::string MakeOwnFolder(const std::string& wanted);
// Returns what that would be called now.
std::string OwnFolderName(const std::string& wanted);

}  // namespace dtrain
