// Makes folders that are removed with their process: for temporary files, and in shared memory.
//
// Such a folder has a name of mkdtemp, dtrain-PID-XXXXXX, mode 0700, and contains a marker that identifies its process
// (core/process_identity.h).  A later start removes the folder of a killed process by that marker alone.  It keeps a
// user's folder that only has such a name, a folder of a process in another container or on another machine that sees
// the same disk, and a folder with an incomplete marker.
#pragma once

#include <filesystem>
#include <string>

namespace dtrain {

// The shared memory of ranks on one machine, Open MPI's and ours, is in this file system.
inline constexpr char kSharedMemory[] = "/dev/shm";

// The marker file has this name.
inline constexpr char kProcessMarker[] = ".dtrain-process";

class ProcessFolder {
 public:
  // Makes a new folder in `above`.  Throws RunFileError if that fails.
  explicit ProcessFolder(const std::filesystem::path& above);
  ~ProcessFolder();  // removes the folder and its content
  ProcessFolder(const ProcessFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int folder_ = -1;  // kept open, so that this folder is removed even if it was renamed
};

// Removes the folders in `above` whose processes have ended.
void RemoveLeftFolders(const std::filesystem::path& above);

// True for a folder of this user that no other user may enter; false for a link to one.
bool IsPrivateFolder(const std::filesystem::path& path);

}  // namespace dtrain
