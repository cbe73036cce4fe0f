#include "framework/hdf5/memory_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/memory.h"

namespace dtrain {
namespace {

[[noreturn]] void ThrowErrno(const char* action, size_t bytes = 0) {
  if (errno == ENOMEM) throw NoMemoryError(bytes, "the image of a checkpoint");
  throw CheckpointError(
      fmt::format("cannot {} a file in memory: {}", action, std::strerror(errno)));
}

[[noreturn]] void ThrowUnreadable(const std::filesystem::path& path, const std::string& reason) {
  throw CheckpointError(fmt::format("cannot read {}: {}", path.string(), reason));
}

constexpr off_t kSmallPiece = 1 << 12, kLargePiece = 1 << 20;

// Opens a file without blocking if it is a pipe.
class Input {
 public:
  explicit Input(const std::filesystem::path& path)
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) ThrowUnreadable(path_, std::strerror(errno));
    if (::fstat(fd_, &status_) != 0) status_ = {};
  }
  ~Input() { ::close(fd_); }
  Input(const Input&) = delete;

  bool IsRegular() const { return S_ISREG(status_.st_mode); }
  // Returns the read size, small for a small file.
  size_t ChunkBytes() const {
    return static_cast<size_t>(std::clamp(status_.st_size + 1, kSmallPiece, kLargePiece));
  }
  // Returns 0 at the end.
  size_t Read(std::vector<char>& chunk) {
    ssize_t bytes = 0;
    do bytes = ::read(fd_, chunk.data(), chunk.size());
    while (bytes < 0 && errno == EINTR);
    if (bytes < 0) ThrowUnreadable(path_, std::strerror(errno));
    return static_cast<size_t>(bytes);
  }

 private:
  const std::filesystem::path& path_;
  int fd_;
  struct stat status_ = {};
};

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

void MemoryFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) ThrowErrno("write");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void MemoryFile::CopyFrom(const std::filesystem::path& path) {
  Input input(path);
  if (!input.IsRegular()) ThrowUnreadable(path, "it is not a regular file");
  if (::lseek(fd_, 0, SEEK_END) < 0) ThrowErrno("write");
  std::vector<char> chunk(input.ChunkBytes());
  while (const size_t bytes = input.Read(chunk)) Write({chunk.data(), bytes});
}

void MemoryFile::WriteAt(uint64_t place, std::string_view bytes) {
  if (::lseek(fd_, static_cast<off_t>(place), SEEK_SET) < 0) ThrowErrno("write");
  Write(bytes);
}

std::string_view MemoryFile::Content() {
  Unmap();
  struct stat status = {};
  if (::fstat(fd_, &status) != 0) ThrowErrno("look at");
  bytes_ = static_cast<size_t>(status.st_size);
  if (bytes_ == 0) return {};
  void* mapped = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, fd_, 0);
  if (mapped == MAP_FAILED) ThrowErrno("map", bytes_);
  mapped_ = mapped;
  return {static_cast<const char*>(mapped_), bytes_};
}

}  // namespace dtrain
