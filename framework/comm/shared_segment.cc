#include "framework/comm/shared_segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "framework/core/error.h"

namespace dtrain {
namespace {

constexpr char kFolder[] = "/dev/shm";

std::string ReasonOf(int error) { return std::generic_category().message(error); }

[[noreturn]] void Throw(const std::string& doing, int error) {
  throw Error(ExitCode::kInternal, "cannot " + doing + ": " + ReasonOf(error));
}

}  // namespace

SharedSegment SharedSegment::Create(size_t bytes) {
  SharedSegment segment;
  segment.file_ = ::open(kFolder, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  struct stat status = {};
  if (segment.file_ < 0 || ::ftruncate(segment.file_, static_cast<off_t>(bytes)) != 0 ||
      ::fstat(segment.file_, &status) != 0) {
    Throw("make shared memory in " + std::string(kFolder), errno);
  }
  segment.place_ = {::getpid(), segment.file_, status.st_dev, status.st_ino};
  segment.bytes_ = bytes;
  segment.Map();
  return segment;
}

SharedSegment SharedSegment::Open(const SegmentPlace& place) {
  const std::string path =
      fmt::format("/proc/{}/fd/{}", place.pid, static_cast<int>(place.descriptor));
  const auto is_it = [&](const struct stat& status) {
    return status.st_dev == place.device && status.st_ino == place.inode;
  };
  SharedSegment segment;
  struct stat status = {};
  // It is checked before it is opened, since the path may be any file of another process.
  if (::stat(path.c_str(), &status) != 0) Throw("open shared memory " + path, errno);
  if (is_it(status)) segment.file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (segment.file_ < 0 || ::fstat(segment.file_, &status) != 0 || !is_it(status)) {
    Throw("open shared memory " + path, is_it(status) ? errno : ESTALE);
  }
  segment.bytes_ = static_cast<size_t>(status.st_size);
  segment.Map();
  return segment;
}

void SharedSegment::Map() {
  void* const memory =
      ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  if (memory == MAP_FAILED) Throw("map shared memory", errno);
  data_ = static_cast<std::byte*>(memory);
}

SharedSegment::~SharedSegment() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
  if (file_ >= 0) ::close(file_);
}

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(place_, other.place_);
  std::swap(file_, other.file_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

std::string SharedSegment::Reserve(size_t begin, size_t end) {
  for (;;) {
    const int error =
        ::posix_fallocate(file_, static_cast<off_t>(begin), static_cast<off_t>(end - begin));
    if (error == 0) return "";
    if (error != EINTR) return ReasonOf(error);
  }
}

}  // namespace dtrain
