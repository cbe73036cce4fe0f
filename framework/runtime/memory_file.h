// A file in memory, for libraries that can only write files: nothing of it is on a disk.
#pragma once

#include <filesystem>
#include <string_view>

namespace dtrain {

class MemoryFile {
 public:
  MemoryFile();  // throws CheckpointError when the system has no room for it
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // Opens like any file, in this process.
  std::filesystem::path path() const;

  // All that was written; valid until the file changes.  Throws CheckpointError.
  std::string_view Content();

 private:
  void Unmap();

  int fd_;
  void* mapped_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace dtrain
