// Survivors gathers the entries of a unit that reach a threshold in one pass, and answers queries about them.
//
// If more values reach it than are needed, exactly the largest `keep` are stored: whenever twice as many are stored,
// the smaller ones are dropped and the threshold rises to the smallest one left.  So one pass finds the k largest of
// any values, from any threshold that k of them reach; a bad threshold only costs time.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/compress/device_values.h"
#include "framework/compress/largest.h"
#include "framework/core/isa.h"
#include "framework/core/layout.h"

namespace dtrain {

class Survivors {
 public:
  // The unit has n values.  The object needs 16 bytes of memory for each kept entry; pages are touched only as entries
  // are stored.
  Survivors(int64_t n, int64_t keep, Isa isa = CpuIsa());

  // Begins a pass; `least` is a magnitude (core/magnitude.h), above 0: zeros never survive.
  void Begin(uint32_t least);
  // The parts must be passed in order.
  void Look(const float* values, Range part);
  void LookOn(DeviceValues& values);

  // True if more values reached the threshold than are stored; then at least `keep` are stored, the largest.
  bool overfull() const { return overfull_; }
  int64_t size() const { return size_; }
  uint32_t least() const { return begun_; }
  // Returns the number of all values that reach `least`, which must not be below the pass's threshold.  The number is
  // exact if it is at most `keep`; else the result is at least `keep`.
  int64_t CountReaching(uint32_t least) const;
  // Returns the smallest entry's magnitude; 0 if there is none.
  uint32_t Smallest() const;

  // Keeps those at the lowest places among equal ones.
  void KeepLargest(int64_t k);
  void KeepReaching(uint32_t least);

  // Writes the places of the entries in `part`, as Selection::Choose requires.
  int64_t Choose(Range part, int32_t* chosen);

 private:
  void DropSmaller();

  const Isa isa_;
  const int64_t keep_;
  const int64_t room_;
  std::unique_ptr<int32_t[]> places_;  // ascending
  std::unique_ptr<float[]> values_;
  uint32_t begun_ = 1, least_ = 1;
  int64_t size_ = 0;
  bool overfull_ = false;
  int64_t next_ = 0;  // next entry to choose
};

}  // namespace dtrain
