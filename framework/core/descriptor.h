// Descriptor owns a file descriptor, of a file, a folder, a socket or a process, and closes it at the end.
#pragma once

#include <unistd.h>

#include <utility>

namespace dtrain {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}  // -1: none
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }  // the caller closes it

 private:
  int fd_;
};

}  // namespace dtrain
