#include "framework/runtime/memory_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "framework/core/error.h"

namespace dtrain {
namespace {

[[noreturn]] void ThrowErrno(const char* action) {
  throw CheckpointError(
      fmt::format("cannot {} a file in memory: {}", action, std::strerror(errno)));
}

}  // namespace

MemoryFile::MemoryFile() : fd_(::memfd_create("dtrain", MFD_CLOEXEC)) {
  if (fd_ < 0) ThrowErrno("make");
}

MemoryFile::~MemoryFile() {
  Unmap();
  ::close(fd_);
}

void MemoryFile::Unmap() {
  if (mapped_ != nullptr) ::munmap(mapped_, bytes_);
  mapped_ = nullptr;
}

std::filesystem::path MemoryFile::path() const { return fmt::format("/proc/self/fd/{}", fd_); }

std::string_view MemoryFile::Content() {
  Unmap();
  struct stat status = {};
  if (::fstat(fd_, &status) != 0) ThrowErrno("look at");
  bytes_ = static_cast<size_t>(status.st_size);
  if (bytes_ == 0) return {};
  void* mapped = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, fd_, 0);
  if (mapped == MAP_FAILED) ThrowErrno("map");
  mapped_ = mapped;
  return {static_cast<const char*>(mapped_), bytes_};
}

}  // namespace dtrain
