#include "framework/core/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "framework/core/descriptor.h"
#include "framework/core/error.h"
#include "framework/core/time.h"

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

int OpenOrThrow(const fs::path& path, int flags, const char* action) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (fd < 0) ThrowErrno(action, path, errno);
  return fd;
}

void SyncFolder(const fs::path& folder) {
  const Descriptor fd(
      OpenOrThrow(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY, "open folder"));
  if (::fsync(fd.get()) != 0) ThrowErrno("sync folder", folder, errno);
}

void WriteAll(int fd, const fs::path& path, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) ThrowErrno("write", path, errno);
    content.remove_prefix(static_cast<size_t>(written));
  }
}

// Writes into a pipe or a device.  A pipe without a reader is an error; a blocking open() would wait.
void WriteInto(const fs::path& path, std::string_view content) {
  const Descriptor fd(OpenOrThrow(path, O_WRONLY | O_NONBLOCK, "write"));
  ::fcntl(fd.get(), F_SETFL, O_WRONLY);
  WriteAll(fd.get(), path, content);
}

constexpr size_t kTextBytes = size_t{1} << 20;
constexpr double kTextSeconds = 10;

const char* KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

// Reads a file or, if `pipes` is true, a pipe; open() never blocks.
class Input {
 public:
  Input(const fs::path& path, bool pipes)
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status = {};
    if (fd_.get() < 0 || ::fstat(fd_.get(), &status) != 0) Refuse(std::strerror(errno));
    is_pipe_ = S_ISFIFO(status.st_mode);
    if (!S_ISREG(status.st_mode) && !(is_pipe_ && pipes)) {
      Refuse(fmt::format("it is {}", KindOf(status.st_mode)));
    }
  }

  std::string ReadAll(std::optional<size_t> most) const {
    const Nanos end = WallNow() + FromSeconds(kTextSeconds);
    std::string content;
    char chunk[1 << 16];
    while (true) {
      if (is_pipe_) AwaitBytes(end);
      const ssize_t bytes = ::read(fd_.get(), chunk, sizeof(chunk));
      if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (bytes < 0) Refuse(std::strerror(errno));
      if (bytes == 0) return content;
      content.append(chunk, static_cast<size_t>(bytes));
      if (most && content.size() > *most) Refuse("it is longer than 1 MB");
    }
  }

 private:
  [[noreturn]] void Refuse(const std::string& why) const {
    throw DataError(fmt::format("cannot read {}: {}", path_.string(), why));
  }

  void AwaitBytes(Nanos end) const {
    pollfd ready = {fd_.get(), POLLIN, 0};
    const double left = ToSeconds(end - WallNow());
    if (left > 0 && ::poll(&ready, 1, static_cast<int>(1000 * left) + 1) != 0) return;
    Refuse(fmt::format("it is a pipe, and has not ended after {} s", kTextSeconds));
  }

  const fs::path& path_;
  const Descriptor fd_;
  bool is_pipe_ = false;
};

// Follows links to the file that is to be replaced.
fs::path BehindLinks(const fs::path& path) {
  std::error_code error;
  // A link's target need not exist yet.
  fs::path behind = path;
  for (int links = 0; fs::is_symlink(behind, error); ++links) {
    if (links == 40) ThrowErrno("write", path, ELOOP);
    behind = behind.parent_path() / fs::read_symlink(behind, error);
    if (error) ThrowErrno("write", path, error.value());
  }
  return behind;
}

void Rename(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) ThrowErrno("rename to", to, errno);
}

// FileBeside creates a file in the folder of `path` under a name that was free: any existing file of a user's folder
// may be the user's.  The destructor removes the file unless it was published; a published name may already belong to
// another process's file.
class FileBeside : public Descriptor {
 public:
  explicit FileBeside(const fs::path& path) : FileBeside(path, Create(path)) {}
  ~FileBeside() {
    if (!name_.empty()) ::unlink(name_.c_str());
  }
  void Publish() {
    if (::fsync(get()) != 0) ThrowErrno("sync", name_, errno);
    Rename(name_, path_);
    name_.clear();
    SyncFolder(path_.parent_path());
  }

 private:
  struct Created {
    fs::path name;
    int fd;
  };
  FileBeside(const fs::path& path, Created created)
      : Descriptor(created.fd), path_(path), name_(std::move(created.name)) {}

  static Created Create(const fs::path& path) {
    for (int number = 0;; ++number) {
      const fs::path name =
          path.parent_path() / fmt::format(".dtrain-{}-{}.tmp", ::getpid(), number);
      const int fd =
          ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
      if (fd >= 0) return {name, fd};
      if (errno != EEXIST) ThrowErrno("write", path, errno);
    }
  }

  const fs::path path_;
  fs::path name_;  // empty once it is published
};

[[noreturn]] void RefuseKind(const fs::path& path, mode_t mode) {
  throw RunFileError(fmt::format("cannot write {}: it is {}", path.string(), KindOf(mode)));
}

}  // namespace

std::string ReadFile(const fs::path& path) { return Input(path, false).ReadAll(std::nullopt); }

std::string WhyNoFile(const fs::path& path, const std::string& absent) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return absent;
  return fmt::format("{} is {}, not a regular file", path.string(), KindOf(status.st_mode));
}

std::string ReadText(const fs::path& path) { return Input(path, true).ReadAll(kTextBytes); }

int CreateFile(const fs::path& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) {
    RefuseKind(path, status.st_mode);
  }
  // If this fails, so does open().
  ::unlink(path.c_str());
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0) ThrowErrno("write", path, errno);
  return fd;
}

int OpenToAppend(const fs::path& path) {
  constexpr int kAppend = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const int fd = ::open(path.c_str(), kAppend, 0644);
  const int error = errno;
  struct stat status = {};
  const bool is_known = (fd < 0 ? ::lstat(path.c_str(), &status) : ::fstat(fd, &status)) == 0;
  if (fd >= 0 && is_known && S_ISREG(status.st_mode)) return fd;
  if (fd >= 0) ::close(fd);
  if (is_known && !S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) {
    RefuseKind(path, status.st_mode);
  }
  ThrowErrno("write", path, error);
}

void PublishDurably(const fs::path& temporary, const fs::path& path) {
  {
    const Descriptor fd(OpenOrThrow(temporary, O_RDONLY, "open"));
    if (::fsync(fd.get()) != 0) ThrowErrno("sync", temporary, errno);
  }
  Rename(temporary, path);
  SyncFolder(path.parent_path());
}

void WriteOutput(const fs::path& path, std::string_view content) {
  struct stat status = {};
  const bool is_there = ::stat(path.c_str(), &status) == 0;
  if (is_there && !S_ISREG(status.st_mode)) return WriteInto(path, content);
  const fs::path behind = BehindLinks(path);
  FileBeside temporary(behind);
  if (is_there) ::fchmod(temporary.get(), status.st_mode & 0777);
  WriteAll(temporary.get(), behind, content);
  temporary.Publish();
}

void WriteFileDurably(const fs::path& path, std::string_view content) {
  NewFile file(path);
  file.Write(content);
  file.Publish();
}

NewFile::NewFile(fs::path path, fs::path temporary)
    : path_(std::move(path)),
      temporary_(temporary.empty() ? fs::path(path_.string() + ".tmp") : std::move(temporary)),
      fd_(CreateFile(temporary_)) {}

NewFile::~NewFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void NewFile::Write(std::string_view content) { WriteAll(fd_, temporary_, content); }

void NewFile::Publish() {
  if (::fsync(fd_) != 0) ThrowErrno("sync", temporary_, errno);
  Rename(temporary_, path_);
  ::close(std::exchange(fd_, -1));
  SyncFolder(path_.parent_path());
}

void MakeFolder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) ThrowErrno("create folder", path, error.value());
  if (::access(path.c_str(), W_OK) != 0) ThrowErrno("write into folder", path, errno);
}

void MakePrivateFolder(const fs::path& path, mode_t mode) {
  std::error_code error;
  const fs::path parent = path.parent_path();
  if (!parent.empty() && !fs::exists(parent, error)) MakePrivateFolder(parent, 0755);
  if (::mkdir(path.c_str(), mode) == 0 || errno == EEXIST) return MakeFolder(path);
  ThrowErrno("create folder", path, errno);
}

std::string WhyNotTrusted(const struct stat& status, uid_t user) {
  if (status.st_uid != user && status.st_uid != 0) {
    return fmt::format("belongs to another user (number {})", status.st_uid);
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return "";
  return fmt::format("may be written by others (mode {:04o})", status.st_mode & 07777);
}

std::string WhyNotTrusted(const fs::path& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 ? WhyNotTrusted(status) : "";
}

std::string WhereItBegins(const fs::path& path) {
  std::error_code lost;
  const fs::path folder = fs::current_path(lost);
  if (path.is_absolute() || lost) return "";
  return fmt::format("a relative path begins in the working directory, {}", folder.string());
}

}  // namespace dtrain
