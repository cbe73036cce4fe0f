#include "framework/compress/scan_selection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace dtrain {
namespace {

constexpr size_t kGatheredMost = 1024;

// Returns the magnitude of the largest float that is not above `threshold`, which must not be negative.
uint32_t MagnitudeBelow(double threshold) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  if (threshold > kLargest) {
    return Magnitude(std::isinf(threshold) ? std::numeric_limits<float>::infinity()
                                           : std::numeric_limits<float>::max());
  }
  const float nearest = static_cast<float>(threshold);
  const uint32_t magnitude = Magnitude(nearest);
  return static_cast<double>(nearest) > threshold ? magnitude - 1 : magnitude;
}

}  // namespace

uint32_t LeastAbove(double threshold) { return threshold > 0 ? MagnitudeBelow(threshold) + 1 : 1; }

double SumOf(const double (&lanes)[kMomentLanes]) {
  return std::accumulate(std::begin(lanes), std::end(lanes), 0.0);
}

Sample::Sample(const SpreadSample& of, int64_t nth, Isa isa)
    : of_(of), nth_(nth), largest_(of.values(), nth, isa) {
  gathered_.reserve(kGatheredMost);
  largest_.Begin(1);
}

void Sample::Look(const float* values, Range part) {
  while (next_run_ < of_.count()) {
    const int64_t place = of_.BeginOf(next_run_) + within_;
    if (place >= part.end) return;
    const int64_t count = std::min(of_.run() - within_, part.end - place);
    Put(values + (place - part.begin), count);
    within_ += count;
    if (within_ < of_.run()) return;
    ++next_run_;
    within_ = 0;
  }
}

void Sample::Put(const float* values, int64_t count) {
  gathered_.insert(gathered_.end(), values, values + count);
  if (gathered_.size() >= kGatheredMost) Flush();
}

void Sample::Flush() {
  const int64_t count = static_cast<int64_t>(gathered_.size());
  largest_.Look(gathered_.data(), {seen_, seen_ + count});
  seen_ += count;
  gathered_.clear();
}

uint32_t Sample::Ranked() {
  if (ranked_ > 0) return ranked_;
  Flush();
  if (largest_.size() < nth_) return 1;
  largest_.KeepLargest(nth_);
  return largest_.Smallest();
}

ScanSelection::ScanSelection(int64_t n, int64_t keep, Isa isa)
    : n_(n), isa_(isa), survivors_(n, keep, isa) {}

bool ScanSelection::WantsLook() {
  pass_ = After(pass_);
  return pass_ != Pass::kNone;
}

void ScanSelection::Look(const float* values, Range part) {
  if (pass_ == Pass::kSample) return sample_->Look(values, part);
  if (pass_ == Pass::kScan) return survivors_.Look(values, part);
  DTRAIN_ISA_SELECT(isa_, AddMoments)(values, part.size(), part.begin, moments_);
}

int64_t ScanSelection::Choose(const float*, Range part, int32_t* chosen) {
  return survivors_.Choose(part, chosen);
}

void ScanSelection::LookOn(DeviceValues& values) {
  if (pass_ == Pass::kSample) return sample_->LookOn(values);
  if (pass_ == Pass::kScan) return survivors_.LookOn(values);
  moments_ = values.Moments();
}

int64_t ScanSelection::ChooseOn(DeviceValues& values, int32_t* chosen) {
  return survivors_.Choose({0, values.size()}, chosen);
}

ScanSelection::Pass ScanSelection::TakeSample(const SpreadSample& of, int64_t nth) {
  sample_.emplace(of, nth, isa_);
  return Pass::kSample;
}

ScanSelection::Pass ScanSelection::ScanFrom(uint32_t least) {
  survivors_.Begin(least);
  return Pass::kScan;
}

ScanSelection::Pass ScanSelection::KeepLargest(int64_t k) {
  survivors_.KeepLargest(k);
  return Pass::kNone;
}

}  // namespace dtrain
