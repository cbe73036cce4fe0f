// SharedSegment: memory that processes of one machine share (POSIX shared memory, in /dev/shm).
//
// At first it is addresses only; Reserve puts memory behind a part of it or says that there is none
// left, so that no later write can fail: one into shared memory that has no room ends the process.
// When everybody who needs the segment has it, its name is removed. What lies in it then goes with
// the last process that has it, however that one ends: nothing is left in /dev/shm.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace dtrain {

class SharedSegment {
 public:
  SharedSegment() = default;
  // A new one, or another process's.  `name`: "/dtrain.17".  Both throw Error with the reason.
  static SharedSegment Create(const std::string& name, size_t bytes);
  static SharedSegment Open(const std::string& name);
  ~SharedSegment();
  SharedSegment(SharedSegment&& other) noexcept { *this = std::move(other); }
  SharedSegment& operator=(SharedSegment&& other) noexcept;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  // The maker's: memory is there from `begin` to `end` from now on.  "" or the reason why not.
  std::string Reserve(size_t begin, size_t end);
  // The maker's: nobody can open it any more.
  void RemoveName();

 private:
  void Map();

  std::string name_;  // to be removed
  int file_ = -1;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace dtrain
