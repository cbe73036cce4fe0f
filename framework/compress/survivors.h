// Survivors: the entries of a unit that reach a threshold, gathered in one pass, with what
// selections ask of them afterwards.
//
// Where far more reach it than anyone wants, the largest `keep` stay at hand, exactly: whenever
// there are twice as many, the others go and the threshold rises to what is left.  So one pass
// finds the k largest of any values, from any threshold that k of them reach; how good the
// threshold is decides on the time only.
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
  // Of n values.  Memory: 16 bytes for each that is kept, as far as they turn up.
  Survivors(int64_t n, int64_t keep, Isa isa = CpuIsa());

  // Begins a pass; `least` is a magnitude (largest.h), above 0: zeros never survive.
  void Begin(uint32_t least);
  // The parts come in order.
  void Look(const float* values, Range part);
  void LookOn(DeviceValues& values);

  // More than are at hand have reached it: these are at least `keep`, and the largest.
  bool overfull() const { return overfull_; }
  int64_t size() const { return size_; }
  uint32_t least() const { return begun_; }
  // How many of all values reach a threshold that is not below the pass's; at least `keep` where
  // this is less than they are.
  int64_t CountReaching(uint32_t least) const;
  // The smallest one's magnitude; 0 for none.
  uint32_t Smallest() const;

  // Of equal ones those at the lowest places stay.
  void KeepLargest(int64_t k);
  void KeepReaching(uint32_t least);

  // The places of those in `part`, as Selection::Choose wants them.
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
  int64_t next_ = 0;  // to be chosen
};

}  // namespace dtrain
