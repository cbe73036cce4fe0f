#include "framework/core/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "framework/core/error.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void ThrowErrno(const char* action, const fs::path& path, int error) {
  std::string hint;
  if (error == ENOSPC)
    hint = "the disk is full: free some space and start again with --resume auto";
  if (error == EACCES || error == EROFS) hint = "choose another folder with --output";
  throw RunFileError(fmt::format("cannot {} {}: {}", action, path.string(), std::strerror(error)),
                     hint);
}

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags, const char* action)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (fd_ < 0) ThrowErrno(action, path, errno);
  }
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

void SyncFolder(const fs::path& folder) {
  const Descriptor fd(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY, "open folder");
  if (::fsync(fd.get()) != 0) ThrowErrno("sync folder", folder, errno);
}

void WriteAll(const fs::path& path, std::string_view content) {
  const Descriptor fd(path, O_WRONLY | O_CREAT | O_TRUNC, "write");
  while (!content.empty()) {
    const ssize_t written = ::write(fd.get(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) ThrowErrno("write", path, errno);
    content.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

std::string ReadFile(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::string content;
  char piece[1 << 16];
  ssize_t bytes = fd;
  while (fd >= 0 && (bytes = ::read(fd, piece, sizeof(piece))) != 0) {
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) break;
    content.append(piece, static_cast<size_t>(bytes));
  }
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (bytes < 0) {
    throw DataError(fmt::format("cannot read {}: {}", path.string(), std::strerror(error)));
  }
  return content;
}

void PublishDurably(const fs::path& temporary, const fs::path& path) {
  {
    const Descriptor fd(temporary, O_RDONLY, "open");
    if (::fsync(fd.get()) != 0) ThrowErrno("sync", temporary, errno);
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) ThrowErrno("rename to", path, errno);
  SyncFolder(path.parent_path());
}

void WriteFileDurably(const fs::path& path, std::string_view content) {
  const fs::path temporary = path.string() + ".tmp";
  try {
    WriteAll(temporary, content);
    PublishDurably(temporary, path);
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
}

void MakeFolder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) ThrowErrno("create folder", path, error.value());
  if (::access(path.c_str(), W_OK) != 0) ThrowErrno("write into folder", path, errno);
}

}  // namespace dtrain
