// SharedSegment: memory shared by processes of one user on one machine (an unnamed file in
// /dev/shm).
//
// At first it has addresses only.  Reserve allocates memory for a part of it, or reports that there
// is none left.  So no later write can fail; a write to shared memory without room would end the
// process.
//
// The file never has a name (open(2), O_TMPFILE), so the kernel frees it when the last process that
// has it ends, for any reason.  Nothing is left in /dev/shm that has to be cleaned up or could be
// mistaken for another run's.  Other processes open it by its maker's descriptor, in /proc, which
// only processes of this user may do (proc(5), ptrace access mode).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "framework/core/bytes.h"

namespace dtrain {

// The address of a segment for other processes.  Device and inode tell it from another file with
// the same pid and descriptor (in another container, for example).
struct SegmentPlace {
  int32_t pid = 0;  // the maker's process; 0: there is no segment
  int32_t descriptor = -1;
  uint64_t device = 0;
  uint64_t inode = 0;
  DTRAIN_FIELDS(pid, descriptor, device, inode)
};

class SharedSegment {
 public:
  SharedSegment() = default;
  // Create makes a new segment, Open maps that of another process.  Both throw Error with the
  // reason.
  static SharedSegment Create(size_t bytes);
  static SharedSegment Open(const SegmentPlace& place);
  ~SharedSegment();
  SharedSegment(SharedSegment&& other) noexcept { *this = std::move(other); }
  SharedSegment& operator=(SharedSegment&& other) noexcept;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // Returns the place for other processes, valid while this segment lives.  Call it only on a
  // created one.
  SegmentPlace place() const { return place_; }

  // Allocates memory from `begin` to `end`.  Returns "" or the reason of the failure.  Call it only
  // on a created one.
  std::string Reserve(size_t begin, size_t end);

 private:
  void Map();

  SegmentPlace place_;
  int file_ = -1;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace dtrain
