// dgc selects approximately the largest entries of each unit, by a threshold from a sample.
//
// It is the selection of Lin, Han, Mao, Wang, Dally, "Deep Gradient Compression", ICLR 2018, as Shi et al. implement it
// (arXiv 1911.08772 and its code), with k = max(1, floor(density * n)):
// 1. take a sample of the fraction `sample_ratio` of the values;
// 2. threshold = the (sample_ratio * k)-th largest magnitude of the sample (Shi et al.'s code takes
//    the k-th, which is far too low if it exists);
// 3. send the values that reach it; if these are more than 4k/3, the k largest of them.
//
// Our differences: the sample has one value from each of equal parts of the unit, drawn by counter-based random
// numbers, and at least 10 / density values, so that one or two of them hardly affect the threshold.  Zeros are not
// sent.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "framework/compress/scan_selection.h"

namespace dtrain {
namespace {

constexpr double kRankLeast = 10;  // minimal rank of the threshold in the sample

class SampledThreshold : public ScanSelection {
 public:
  SampledThreshold(int64_t n, double density, double sample_ratio, const SelectionKey& key)
      : ScanSelection(n, SentMost(n, density), CpuIsa()),
        k_(EntriesAsked(density, n)),
        draws_(DrawsOf(n, density, sample_ratio)),
        sample_(n, draws_, 1, RandomOf(key)) {}

  static int64_t SentMost(int64_t n, double density) {
    return std::min(n, 4 * EntriesAsked(density, n) / 3);
  }

 protected:
  Pass After(Pass done) override {
    if (done == Pass::kNone) return TakeSample(sample_, Rank());
    if (done == Pass::kSample) return ScanFrom(sample().Ranked());
    const bool many = survivors().overfull() || 3 * survivors().size() > 4 * k_;
    return many ? KeepLargest(k_) : Pass::kNone;
  }

 private:
  static int64_t DrawsOf(int64_t n, double density, double sample_ratio) {
    const double least = std::min(std::ceil(kRankLeast / density), static_cast<double>(n));
    return std::max(CeilOfShare(sample_ratio, n), static_cast<int64_t>(least));
  }

  int64_t Rank() const {
    const double share = static_cast<double>(draws_) / static_cast<double>(n());
    return std::clamp<int64_t>(std::llround(share * static_cast<double>(k_)), 1, draws_);
  }

  const int64_t k_, draws_;
  const SpreadSample sample_;
};

class Dgc : public Compressor {
 public:
  void Configure(config::Reader& reader, CompressConfig&) override {
    corrects_momentum_ = reader.Bool("momentum_correction", true)
                             .Help(
                                 "all-reduce: each worker applies sgd's momentum itself, before "
                                 "the selection, and resets it where an entry is sent");
    sample_ratio_ = reader.Number("sample_ratio", kSampleRatio)
                        .Above(0)
                        .Max(1)
                        .Help("fraction of a unit's values in the sample for its threshold");
  }
  std::unique_ptr<Selection> Select(int64_t n, double density,
                                    const SelectionKey& key) const override {
    return std::make_unique<SampledThreshold>(n, density, sample_ratio_, key);
  }
  int64_t EntriesMost(int64_t n, double density) const override {
    return SampledThreshold::SentMost(n, density);
  }
  bool corrects_momentum() const override { return corrects_momentum_; }
  int passes() const override { return 2; }
  std::string cost_keys() const override {
    return sample_ratio_ == kSampleRatio ? "" : fmt::format("sample_ratio={}", sample_ratio_);
  }

 private:
  static constexpr double kSampleRatio = 0.01;  // default of the key
  double sample_ratio_ = kSampleRatio;
  bool corrects_momentum_ = true;
};

DTRAIN_COMPRESSOR("dgc", Dgc, "about the largest entries of each unit, by a sampled threshold");

}  // namespace
}  // namespace dtrain
