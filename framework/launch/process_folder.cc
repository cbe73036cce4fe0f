#include "framework/launch/process_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "framework/core/descriptor.h"
#include "framework/core/error.h"
#include "framework/core/process_identity.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kName = "dtrain-";
constexpr size_t kDrawn = 6;  // letters that mkdtemp draws
constexpr size_t kMarkerBytesMax = 4096;

[[noreturn]] void ThrowErrno(const std::string& name) {
  throw RunFileError(fmt::format("cannot create folder {}: {}", name, std::strerror(errno)),
                     "set TMPDIR to a folder that can be written");
}

// Opens a folder that is no link; returns -1 if that fails.
int OpenFolder(const fs::path& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// True for names of the form dtrain-PID-XXXXXX.
bool IsFolderName(std::string_view name) {
  if (!name.starts_with(kName)) return false;
  name.remove_prefix(kName.size());
  const size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  if (digits == 0 || name.size() != digits + 1 + kDrawn || name[digits] != '-') return false;
  const auto is_drawn = [](unsigned char letter) { return std::isalnum(letter) != 0; };
  return std::ranges::all_of(name.substr(digits + 1), is_drawn);
}

// True for a directory of this user with mode 0700.  It may have the set-group-ID bit, which it inherits from the
// folder above.
bool IsPrivate(const struct stat& status) {
  return S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() && (status.st_mode & 0777) == 0700;
}

bool WriteMarker(int folder) {
  const std::optional<ProcessIdentity> self = IdentityOfThisProcess();
  if (!self) return true;  // the folder then stays if this process is killed
  const std::string text = ToText(*self);
  const int file =
      ::openat(folder, kProcessMarker, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return false;
  const ssize_t written = ::write(file, text.data(), text.size());
  const bool whole = written == static_cast<ssize_t>(text.size());
  if (!whole && written >= 0) errno = ENOSPC;
  const int error = errno;
  ::close(file);
  errno = error;
  return whole;
}

std::optional<ProcessIdentity> ReadMarker(int folder) {
  const int file = ::openat(folder, kProcessMarker, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  struct stat status = {};
  std::string text(kMarkerBytesMax, '\0');
  ssize_t bytes = -1;
  if (::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid()) {
    bytes = ::read(file, text.data(), text.size());
  }
  ::close(file);
  if (bytes <= 0) return std::nullopt;
  text.resize(static_cast<size_t>(bytes));
  return ParseIdentity(text);
}

// Removes the content of the open folder.  It goes through the descriptor, so that another folder of the same name is
// never emptied.  The marker is removed last: if something cannot be removed now, the next start tries again.
void Empty(int folder) {
  std::error_code error;
  std::vector<fs::path> inside;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/self/fd/{}", folder), error)) {
    if (entry.path().filename() != kProcessMarker) inside.push_back(entry.path());
  }
  bool is_empty = !error;
  for (const fs::path& path : inside) {
    fs::remove_all(path, error);
    is_empty &= !error;
  }
  if (is_empty) ::unlinkat(folder, kProcessMarker, 0);
}

void Remove(int folder, const fs::path& path) {
  constexpr int kTries = 3;  // a process that is being killed may still have written
  for (int tries = 0; tries < kTries; ++tries) {
    Empty(folder);
    if (::rmdir(path.c_str()) == 0 || errno != ENOTEMPTY) return;
  }
}

void RemoveIfLeft(const fs::path& path) {
  const Descriptor folder(OpenFolder(path));
  struct stat status = {};
  if (folder.get() < 0 || ::fstat(folder.get(), &status) != 0 || !IsPrivate(status)) return;
  const std::optional<ProcessIdentity> owner = ReadMarker(folder.get());
  if (owner && HasEnded(*owner)) Remove(folder.get(), path);
}

}  // namespace

ProcessFolder::ProcessFolder(const fs::path& above) {
  std::string name = (above / fmt::format("{}{}-XXXXXX", kName, ::getpid())).string();
  if (::mkdtemp(name.data()) == nullptr) ThrowErrno(name);
  folder_ = OpenFolder(name);
  if (folder_ < 0 || !WriteMarker(folder_)) {
    const int error = errno;
    if (folder_ >= 0) ::unlinkat(folder_, kProcessMarker, 0);
    if (folder_ >= 0) ::close(folder_);
    ::rmdir(name.c_str());
    errno = error;
    ThrowErrno(name);
  }
  path_ = name;
}

ProcessFolder::~ProcessFolder() {
  Remove(folder_, path_);
  ::close(folder_);
}

void RemoveLeftFolders(const fs::path& above) {
  std::error_code ignored;
  std::vector<fs::path> named;
  for (const auto& entry : fs::directory_iterator(above, ignored)) {
    if (IsFolderName(entry.path().filename().string())) named.push_back(entry.path());
  }
  for (const fs::path& path : named) RemoveIfLeft(path);
}

bool IsPrivateFolder(const fs::path& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 && IsPrivate(status);
}

}  // namespace dtrain
