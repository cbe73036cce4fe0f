#include "framework/compress/sampled_largest.h"

#include <algorithm>
#include <cmath>

namespace dtrain {
namespace {

constexpr int64_t kWithoutSample = 16384;  // values; up to here a sample saves nothing
constexpr double kRank = 16;               // approximate rank of the k-th largest within the sample
constexpr int64_t kSampleShare = 32;       // the sample is at most 1/32 of the values
constexpr int64_t kChosenShare = 8;        // SelectLargest samples if at most 1/8 is chosen

}  // namespace

SampledLargest::SampledLargest(int64_t n, int64_t k, Isa isa) : ScanSelection(n, k, isa), k_(k) {}

SpreadSample SampledLargest::SampleOf(int64_t n, int64_t k) {
  const double wanted = kRank * static_cast<double>(n) / static_cast<double>(k);
  const auto values = static_cast<int64_t>(std::min(wanted, static_cast<double>(n / kSampleShare)));
  return {n, n <= kWithoutSample ? 0 : values / kRun, kRun};
}

ScanSelection::Pass SampledLargest::After(Pass done) {
  if (done == Pass::kNone) {
    const SpreadSample sample = SampleOf(n(), k_);
    if (sample.count() == 0) return ScanFrom(1);
    // The rank is three standard deviations beyond that of the k-th largest, so that rarely fewer than k values reach
    // the threshold.
    const double share = static_cast<double>(sample.values()) / static_cast<double>(n());
    const double rank = share * static_cast<double>(k_);
    const double safe = std::ceil(rank + 3 * std::sqrt(rank) + 3);
    return TakeSample(sample, static_cast<int64_t>(safe));
  }
  if (done == Pass::kSample) return ScanFrom(sample().Ranked());
  if (survivors().size() < k_ && survivors().least() > 1) return ScanFrom(1);
  return KeepLargest(k_);
}

std::unique_ptr<Selection> SelectLargest(int64_t n, int64_t k) {
  if (k > n / kChosenShare) return std::make_unique<LargestSelection>(k);
  return std::make_unique<SampledLargest>(n, k);
}

}  // namespace dtrain
