// FloatRoom: a kernel's scratch or saved memory, cut into named pieces when the kernel is made.
//
//   FloatRoom room;
//   const int64_t gates = room.Take(batch * 3 * hidden);    // an offset, in floats
//   ... needs.scratch_bytes = room.bytes();                 // later: scratch + gates
#pragma once

#include <cstddef>
#include <cstdint>

namespace dtrain {

class FloatRoom {
 public:
  // Pieces begin on cache lines.
  int64_t Take(int64_t floats) {
    const int64_t at = floats_;
    floats_ += (floats + 15) / 16 * 16;
    return at;
  }
  size_t bytes() const { return static_cast<size_t>(floats_) * sizeof(float); }

 private:
  int64_t floats_ = 0;
};

}  // namespace dtrain
