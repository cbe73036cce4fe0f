#include "framework/comm/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "framework/core/error.h"

namespace dtrain {
namespace {

std::string ReasonOf(int error) { return std::generic_category().message(error); }

[[noreturn]] void Throw(const std::string& doing, int error) {
  throw Error(ExitCode::kInternal, "cannot " + doing + ": " + ReasonOf(error));
}

}  // namespace

SharedSegment SharedSegment::Create(const std::string& name, size_t bytes) {
  SharedSegment segment;
  segment.file_ = ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (segment.file_ < 0) Throw("make shared memory " + name, errno);
  segment.name_ = name;
  segment.bytes_ = bytes;
  if (::ftruncate(segment.file_, static_cast<off_t>(bytes)) != 0) {
    Throw("make shared memory " + name, errno);
  }
  segment.Map();
  return segment;
}

SharedSegment SharedSegment::Open(const std::string& name) {
  SharedSegment segment;
  segment.file_ = ::shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0);
  if (segment.file_ < 0) Throw("open shared memory " + name, errno);
  struct stat status = {};
  if (::fstat(segment.file_, &status) != 0) Throw("open shared memory " + name, errno);
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
  RemoveName();
  if (data_ != nullptr) ::munmap(data_, bytes_);
  if (file_ >= 0) ::close(file_);
}

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(name_, other.name_);
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

void SharedSegment::RemoveName() {
  if (!name_.empty()) ::shm_unlink(name_.c_str());
  name_.clear();
}

}  // namespace dtrain
