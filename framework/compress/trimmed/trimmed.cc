// trimmed selects the largest entries by a threshold between the mean and the maximum of |u|. It has the two selectors
// of RedSync (Fang, Fu, Yang, Hsieh, "RedSync: Reducing synchronization bandwidth for distributed deep learning
// training system", JPDC 2019), k = max(1, floor(density * n)).
//
//   threshold = mean + ratio * (maximum - mean)
//
// `selector: trimmed`: the ratio is 0.8, 0.6, ... until k entries are above the threshold; of these the k largest are
// sent.  Our difference: after ratio 0 all nonzero entries are candidates, so the choice is always that of topk.
// `selector: search`: ratio from a binary search between 0 and 1 that ends where between k and 2k are above, or at a
// step of 0.2 (Shi et al.'s code: at fewer than k/2 the ratio goes down, else up).  The entries of the last count are
// sent.  Our differences: if there are none, the largest one is sent; if there are more than 4k, the largest 4k.  Zeros
// are not sent.
#include <algorithm>

#include "framework/compress/scan_selection.h"

namespace dtrain {
namespace {

constexpr int kSentMost = 4;  // the search sends at most 4 k entries

uint32_t LeastOfRatio(const UnitMoments& moments, int64_t n, double ratio) {
  const double mean = SumOf(moments.magnitudes) / static_cast<double>(n);
  const double maximum = OfMagnitude(moments.largest);
  return LeastAbove(mean + ratio * (maximum - mean));
}

class TrimmedSelection : public ScanSelection {
 public:
  TrimmedSelection(int64_t n, int64_t k) : ScanSelection(n, k, CpuIsa()), k_(k) {}

 protected:
  Pass After(Pass done) override {
    if (done == Pass::kNone) return Pass::kMoments;
    if (done == Pass::kScan && (survivors().size() >= k_ || survivors().least() == 1)) {
      return KeepLargest(k_);
    }
    if (fifths_ < 0) return ScanFrom(1);
    return ScanFrom(LeastOfRatio(moments(), n(), fifths_-- / 5.0));
  }

 private:
  const int64_t k_;
  int fifths_ = 4;  // fifths of the next ratio
};

class SearchSelection : public ScanSelection {
 public:
  SearchSelection(int64_t n, int64_t k)
      : ScanSelection(n, std::min(n, kSentMost * k), CpuIsa()), k_(k) {}

 protected:
  Pass After(Pass done) override {
    if (done == Pass::kNone) return Pass::kMoments;
    if (ended_) return KeepLargest(1);
    if (done == Pass::kScan) {
      const int64_t count = survivors().size();
      (2 * count < k_ ? right_ : left_) = ratio_;
      if ((k_ < count && count < 2 * k_) || right_ - left_ <= kStepLeast) {
        if (count > 0) return KeepLargest(kSentMost * k_);
        ended_ = true;  // no entry: send the largest
        return ScanFrom(std::max(moments().largest, 1u));
      }
    }
    ratio_ = (left_ + right_) / 2;
    return ScanFrom(LeastOfRatio(moments(), n(), ratio_));
  }

 private:
  static constexpr double kStepLeast = 0.2;

  const int64_t k_;
  double left_ = 0, right_ = 1, ratio_ = 0;
  bool ended_ = false;
};

class Trimmed : public Compressor {
 public:
  void Configure(config::Reader& reader, CompressConfig&) override {
    const std::string selector =
        reader.String("selector", "trimmed")
            .OneOf({"trimmed", "search"})
            .Help(
                "trimmed: exactly the largest, by lowering a threshold until enough reach it; "
                "search: the entries above a threshold that a binary search finds");
    search_ = selector == "search";
  }
  std::unique_ptr<Selection> Select(int64_t n, double density, const SelectionKey&) const override {
    const int64_t k = EntriesAsked(density, n);
    if (search_) return std::make_unique<SearchSelection>(n, k);
    return std::make_unique<TrimmedSelection>(n, k);
  }
  int64_t EntriesMost(int64_t n, double density) const override {
    const int64_t k = EntriesAsked(density, n);
    return search_ ? std::min(n, kSentMost * k) : k;
  }
  int passes() const override { return 4; }
  std::string cost_keys() const override { return search_ ? "selector=search" : ""; }

 private:
  bool search_ = false;
};

DTRAIN_COMPRESSOR("trimmed", Trimmed,
                  "the largest entries of each unit, by a threshold between the mean and the "
                  "maximum");

}  // namespace
}  // namespace dtrain
