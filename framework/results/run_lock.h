// RunLock lets one run at a time write into a folder.
//
// <folder>/run.lock names the process that writes into the folder: host, process id and start time.  The lock is
// flock(2) on that file.  It ends with its process, however that ends, so the file of a killed run is no obstacle.
// Other users cannot open the file and so cannot block the run (core/lock_file.h).  If they can, because an older
// version made it, a lock on it counts only while the process that the file names is alive.
//
// If the file system does not support locks, the named process is looked up.  On this host it holds the folder while it
// exists.  On another host it is assumed to exist, unless it belongs to the Slurm job of this process, which Slurm has
// then restarted.  Two runs that start at the same moment without locks can miss each other.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "framework/core/lock_file.h"

namespace dtrain {

class RunLock {
 public:
  // REQUIRES: the folder exists.  Throws UsageError, naming the holder, if another run has the lock, and if a run.lock
  // exists that no run has written.  Throws RunFileError if the file cannot be written.  Tests replace `flock`.
  explicit RunLock(const std::filesystem::path& folder, LockFile::Flock flock = ::flock);
  ~RunLock();  // removes the file
  RunLock(RunLock&& other) noexcept = default;
  RunLock& operator=(RunLock&&) = delete;

  // Notes that the folder was created for this run: the destructor removes it if it is empty.
  void MadeFolder() { made_folder_ = true; }

 private:
  LockFile file_;
  bool made_folder_ = false;
};

// True if a run is writing into this folder, as far as this process can tell.  A run that was killed on another host,
// or that is another user's, counts until its folder is used again.  Takes no lock.
bool RunGoesOn(const std::filesystem::path& folder);

// Throws the UsageError of RunLock if RunGoesOn is true.
void RefuseRunThatGoesOn(const std::filesystem::path& folder);

// Creates a new folder `wanted`, or if that exists wanted-2, wanted-3, ..., and returns its path.  Used for names made
// from the time, which runs started at the same time share.
std::string MakeOwnFolder(const std::string& wanted);
// Returns the path that MakeOwnFolder would create now.
std::string OwnFolderName(const std::string& wanted);

}  // namespace dtrain
