// SharedSegment: memory that processes of one machine and user share (a file in /dev/shm without a name).
//
// At first it is addresses only; Reserve puts memory behind a part of it or says that there is none
// left, so that no later write can fail: one into shared memory that has no room ends the process.
//
// The file never has a name (open(2), O_TMPFILE), so that it goes with the last process that has it, however that one
// ends: nothing is left in /dev/shm, and nothing there has to be cleaned up or can be mistaken for it.  Others reach it
// by its maker's descriptor, in /proc, where only processes of this user may (proc(5), ptrace access mode).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "framework/core/bytes.h"

namespace dtrain {

// Where another process finds a segment.  The file's own numbers tell it from what has the same descriptor elsewhere.
struct SegmentPlace {
  int32_t pid = 0;  // the maker's; 0: there is none
  int32_t descriptor = -1;
  uint64_t device = 0;
  uint64_t inode = 0;
  DTRAIN_FIELDS(pid, descriptor, device, inode)
};

class SharedSegment {
 public:
  SharedSegment() = default;
  // A new one, or another process's.  Both throw Error with the reason.
  static SharedSegment Create(size_t bytes);
  static SharedSegment Open(const SegmentPlace& place);
  ~SharedSegment();
  SharedSegment(SharedSegment&& other) noexcept { *this = std::move(other); }
  SharedSegment& operator=(SharedSegment&& other) noexcept;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // The maker's: for the others, as long as this lives.
  SegmentPlace place() const { return place_; }

  // The maker's: memory is there from `begin` to `end` from now on.  "" or the reason why not.
  std::string Reserve(size_t begin, size_t end);

 private:
  void Map();

  SegmentPlace place_;
  int file_ = -1;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace dtrain
