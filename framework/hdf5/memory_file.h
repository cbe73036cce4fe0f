// A file in memory, for libraries that know files only: nothing of it is on a disk, and nobody else
// changes it.
#pragma once

#include <cstdint>
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

  // Appends what a regular file holds.  Throws CheckpointError "cannot read PATH: ...", for pipes
  // and devices as well.
  void CopyFrom(const std::filesystem::path& path);
  void WriteAt(uint64_t place, std::string_view bytes);  // throws CheckpointError

  // All that was written; valid until the file changes.  Throws CheckpointError.
  std::string_view Content();

 private:
  void Unmap();
  void Write(std::string_view bytes);

  int fd_;
  void* mapped_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace dtrain
