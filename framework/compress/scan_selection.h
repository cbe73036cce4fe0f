// ScanSelection: a selection that finds its entries in passes of three kinds, and decides after
// each what comes next.
//
//   moments   sums over all values
//   sample    some of the values
//   scan      the survivors of a threshold
//
// What has survived in the end is chosen.  A class says only how thresholds follow from passes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/compress/compressor.h"
#include "framework/compress/scan.h"
#include "framework/compress/survivors.h"

namespace dtrain {

// The least magnitude above `threshold`; NaN and what is negative count as 0.
uint32_t LeastAbove(double threshold);

// Values at given places, in runs of equal length, of which the largest are asked for.
class Sample {
 public:
  // `rank`: which of the largest will be asked for.  The runs do not overlap.
  Sample(std::vector<int64_t> begins, int64_t run, int64_t rank, Isa isa);
  void Look(const float* values, Range part);
  void LookOn(DeviceValues& values);
  // The rank-th largest magnitude; 1 where so many are not zero.
  uint32_t Ranked();

 private:
  void Put(const float* values, int64_t count);
  void Flush();

  const std::vector<int64_t> begins_;  // ascending
  const int64_t run_, rank_;
  int64_t next_ = 0;  // of all values in the runs
  std::vector<float> gathered_;
  int64_t seen_ = 0;  // before those
  Survivors largest_;
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

  // Of n values; `keep` and `isa` as in Survivors.
  ScanSelection(int64_t n, int64_t keep, Isa isa);

  // The pass that follows `done`, which is kNone at the begin.  kNone: what has survived is chosen.
  virtual Pass After(Pass done) = 0;

  // Results of After.
  Pass TakeSample(std::vector<int64_t> begins, int64_t run, int64_t rank);
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

// Sums of the lanes.
double SumOf(const double (&lanes)[kMomentLanes]);

}  // namespace dtrain
