// ScanSelection finds its entries in passes of three kinds, and decides after each pass on the next one.
//
//   moments   sums over all values
//   sample    some of the values
//   scan      the survivors of a threshold
//
// The survivors of the last scan are chosen.  A subclass only derives thresholds from passes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/compress/compressor.h"
#include "framework/compress/scan.h"
#include "framework/compress/spread_sample.h"
#include "framework/compress/survivors.h"

namespace dtrain {

// Returns the least magnitude above `threshold`; NaN and negative thresholds count as 0.
uint32_t LeastAbove(double threshold);

// Finds the nth largest of a sample of the values.
class Sample {
 public:
  Sample(const SpreadSample& of, int64_t nth, Isa isa);
  void Look(const float* values, Range part);
  void LookOn(DeviceValues& values) { ranked_ = values.Ranked(of_, nth_); }
  // Returns the nth largest magnitude; 1 if fewer values are not zero.
  uint32_t Ranked();

 private:
  void Put(const float* values, int64_t count);
  void Flush();

  const SpreadSample of_;
  const int64_t nth_;
  int64_t next_run_ = 0, within_ = 0;  // the next value of the sample
  std::vector<float> gathered_;
  int64_t seen_ = 0;  // values before the gathered ones
  Survivors largest_;
  uint32_t ranked_ = 0;  // the result, if a device has found it
};

class ScanSelection : public Selection {
 public:
  bool WantsLook() final;
  void Look(const float* values, Range part) final;
  int64_t Choose(const float* values, Range part, int32_t* chosen) final;
  void LookOn(DeviceValues& values) final;
  int64_t ChooseOn(DeviceValues& values, int32_t* chosen) final;

 protected:
  enum class Pass { kNone, kMoments, kSample, kScan };

  // Selects from n values; `keep` and `isa` as in Survivors.
  ScanSelection(int64_t n, int64_t keep, Isa isa);

  // Returns the pass that follows `done` (kNone at the begin); kNone: the survivors are chosen.
  virtual Pass After(Pass done) = 0;

  // Prepare a pass, and return it as the result of After.
  Pass TakeSample(const SpreadSample& of, int64_t nth);
  Pass ScanFrom(uint32_t least);
  Pass KeepLargest(int64_t k);  // the end

  int64_t n() const { return n_; }
  const UnitMoments& moments() const { return moments_; }
  Sample& sample() { return *sample_; }
  Survivors& survivors() { return survivors_; }
  const Survivors& survivors() const { return survivors_; }

 private:
  const int64_t n_;
  const Isa isa_;
  Pass pass_ = Pass::kNone;
  UnitMoments moments_;
  std::optional<Sample> sample_;
  Survivors survivors_;
};

// Returns the sum of the lanes.
double SumOf(const double (&lanes)[kMomentLanes]);

}  // namespace dtrain
