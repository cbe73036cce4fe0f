#include "framework/compress/sampled_largest.h"

#include <algorithm>
#include <cmath>

namespace dtrain {
namespace {

constexpr int64_t kWithoutSample = 16384;  // values; a sample saves nothing there
constexpr double kRank = 16;               // of the k-th largest in the sample, about
constexpr int64_t kSampleShare = 32;       // no more than this part of the values
constexpr int64_t kChosenShare = 8;        // SelectLargest: no more than this part is chosen

}  // namespace

SampledLargest::SampledLargest(int64_t n, int64_t k, Isa isa) : ScanSelection(n, k, isa), k_(k) {}

// One run in each of as many equal parts, at places there that no period of the values falls in with
// (multiples of the golden section).
std::vector<int64_t> SampledLargest::SampleRuns(int64_t n, int64_t k) {
  if (n <= kWithoutSample) return {};
  const double wanted = kRank * static_cast<double>(n) / static_cast<double>(k);
  const int64_t runs =
      static_cast<int64_t>(std::min(wanted, static_cast<double>(n / kSampleShare))) / kRun;
  if (runs == 0) return {};
  const int64_t stride = n / runs;
  std::vector<int64_t> begins(static_cast<size_t>(runs));
  uint32_t turn = 0;
  for (int64_t i = 0; i < runs; ++i, turn += 0x9E3779B9u) {
    const uint64_t room = static_cast<uint64_t>(stride - kRun + 1);
    begins[static_cast<size_t>(i)] = i * stride + static_cast<int64_t>((turn * room) >> 32);
  }
  return begins;
}

ScanSelection::Pass SampledLargest::After(Pass done) {
  if (done == Pass::kNone) {
    std::vector<int64_t> begins = SampleRuns(n(), k_);
    if (begins.empty()) return ScanFrom(1);
    // Three standard deviations above the k-th largest's rank, so that hardly ever fewer than k
    // reach what is found there.
    const double share = static_cast<double>(std::ssize(begins) * kRun) / static_cast<double>(n());
    const double rank = share * static_cast<double>(k_);
    const double safe = std::ceil(rank + 3 * std::sqrt(rank) + 3);
    return TakeSample(std::move(begins), kRun, static_cast<int64_t>(safe));
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
