// A file in memory, for libraries that work on files only: it is not on disk, and no other process can change it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace dtrain {

class MemoryFile {
 public:
  MemoryFile();  // throws CheckpointError if there is no memory
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // Returns a path by which this process can open the file.
  std::filesystem::path path() const;

  // Appends the content of a regular file.  Throws CheckpointError "cannot read PATH: ...", also for pipes and devices.
  void CopyFrom(const std::filesystem::path& path);
  void WriteAt(uint64_t place, std::string_view bytes);  // throws CheckpointError

  // Returns the whole content; valid until the file changes.  Throws CheckpointError.
  std::string_view Content();

 private:
  void Unmap();
  void Write(std::string_view bytes);

  int fd_;
  void* mapped_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace dtrain
