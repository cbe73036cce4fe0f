// Folders that go with their process: for temporary files, and in shared memory.
//
// Such a folder has mkdtemp's name, dtrain-PID-XXXXXX, mode 0700, and in it a marker that says which process it
// belongs to (core/process_identity.h).  What a killed process left, a later start removes by that marker alone: a
// folder of the user's that is only named like one, one of a process in another container or on another machine that
// sees the same folder, and one whose marker is not whole stay.
#pragma once

#include <filesystem>
#include <string>

namespace dtrain {

// Where ranks on one machine share memory, Open MPI's and ours.
inline constexpr char kSharedMemory[] = "/dev/shm";

// The marker's name.
inline constexpr char kProcessMarker[] = ".dtrain-process";

class ProcessFolder {
 public:
  // A new one beneath `above`.  Throws RunFileError where it cannot be made.
  explicit ProcessFolder(const std::filesystem::path& above);
  ~ProcessFolder();  // removes it with all that is in it
  ProcessFolder(const ProcessFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int folder_ = -1;  // open: what is removed is this folder, whatever has its name by then
};

// Removes the folders beneath `above` whose processes have ended.
void RemoveLeftFolders(const std::filesystem::path& above);

// True for a folder that is this user's and that nobody else may enter; a link to one is none.
bool IsPrivateFolder(const std::filesystem::path& path);

}  // namespace dtrain
