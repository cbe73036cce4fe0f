#include "framework/compress/gaussiank/gaussiank.h"

#include <algorithm>
#include <cmath>

namespace dtrain {
namespace {

constexpr double kLowerFactor = 0.5, kHigherFactor = 1.5;  // factors of the threshold
constexpr int kPublishedTests = 3;
constexpr int kCap = 4;  // the published loop sends at most 4 k entries
// Limits of the bracketed loop.  Most tests need no scan of their own, only the survivors of the last one.
constexpr int kScansMost = 5, kTestsMost = 24;

bool TooFew(int64_t count, int64_t k) { return 3 * count < 2 * k; }
bool TooMany(int64_t count, int64_t k) { return 3 * count > 4 * k; }

double NormalThreshold(const UnitMoments& moments, int64_t n, double density) {
  const double count = static_cast<double>(n);
  const double sum = SumOf(moments.sum), mean = sum / count;
  const double squares = std::max(SumOf(moments.squares) - sum * mean, 0.0);
  const double deviation = n > 1 ? std::sqrt(squares / (count - 1)) : 0;
  return mean + UpperNormalQuantile(density / 2) * deviation;
}

}  // namespace

PublishedGaussian::PublishedGaussian(int64_t n, double density, Isa isa)
    : ScanSelection(n, std::min(n, kCap * EntriesAsked(density, n)), isa),
      k_(EntriesAsked(density, n)),
      density_(density) {}

ScanSelection::Pass PublishedGaussian::After(Pass done) {
  if (done == Pass::kNone) return Pass::kMoments;
  if (ended_) return KeepLargest(1);
  if (done == Pass::kMoments) {
    threshold_ = NormalThreshold(moments(), n(), density_);
  } else {
    const int64_t count = survivors().size();
    const bool few = TooFew(count, k_), many = TooMany(count, k_);
    if (++tests_ == kPublishedTests || (!few && !many)) {
      if (count > 0) return KeepLargest(kCap * k_);
      ended_ = true;  // no entry: send the largest
      return ScanFrom(std::max(moments().largest, 1u));
    }
    threshold_ *= few ? kLowerFactor : kHigherFactor;
  }
  return ScanFrom(LeastAbove(threshold_));
}

// A scan keeps 2 k entries, so that for every higher threshold it is known whether it admits too many.
BracketedGaussian::BracketedGaussian(int64_t n, double density, float begin, Isa isa)
    : ScanSelection(n, std::min(n, 2 * EntriesAsked(density, n)), isa),
      k_(EntriesAsked(density, n)),
      density_(density),
      threshold_(begin > 0 && std::isfinite(begin) ? begin : 0) {}

int64_t BracketedGaussian::EntriesMost(int64_t k) { return 4 * k / 3; }

ScanSelection::Pass BracketedGaussian::After(Pass done) {
  if (done == Pass::kNone && threshold_ == 0) return Pass::kMoments;
  if (done == Pass::kScan) return exact_ ? KeepLargest(k_) : Test();
  if (done == Pass::kMoments) threshold_ = NormalThreshold(moments(), n(), density_);
  ++scans_;
  return ScanFrom(LeastAbove(threshold_));
}

// Tests thresholds on the survivors of a scan.
ScanSelection::Pass BracketedGaussian::Test() {
  for (;;) {
    const uint32_t least = LeastAbove(threshold_);
    const int64_t count = survivors().CountReaching(least);
    const bool few = TooFew(count, k_), many = TooMany(count, k_);
    if (!few && !many) {
      survivors().KeepReaching(least);
      return Pass::kNone;
    }
    (few ? high_ : low_) = threshold_;
    if (++tests_ >= kTestsMost || !(threshold_ > 0)) return SendLargest();
    threshold_ = low_ > 0 && high_ > 0 ? std::sqrt(low_ * high_)
                                       : threshold_ * (few ? kLowerFactor : kHigherFactor);
    if (LeastAbove(threshold_) < survivors().least()) break;
  }
  if (++scans_ > kScansMost) return SendLargest();
  return ScanFrom(LeastAbove(threshold_));
}

// Sends the k largest if no threshold was found.  Scans again from 1 if the survivors may not include them.
ScanSelection::Pass BracketedGaussian::SendLargest() {
  exact_ = true;
  if (survivors().size() >= k_ || survivors().least() == 1) return KeepLargest(k_);
  return ScanFrom(1);
}

// If the loop found no threshold, returns one just below the smallest sent entry.
float BracketedGaussian::Threshold() const {
  const uint32_t smallest = survivors().Smallest();
  if (smallest == 0) return 0;
  if (exact_) return OfMagnitude(smallest - 1);
  return threshold_ > 0 ? static_cast<float>(threshold_) : 0;
}

namespace {

class GaussianK : public Compressor {
 public:
  void Configure(config::Reader& reader, CompressConfig&) override {
    const std::string loop = reader.String("loop", "bracketed")
                                 .OneOf({"bracketed", "published"})
                                 .Help(
                                     "how the threshold is adjusted; bracketed: from the previous "
                                     "selection's, between one that is too low and one that is too "
                                     "high; published: times 0.5 or 1.5, at most three times");
    published_ = loop == "published";
  }
  std::unique_ptr<Selection> Select(int64_t n, double density,
                                    const SelectionKey& key) const override {
    if (published_) return std::make_unique<PublishedGaussian>(n, density);
    return std::make_unique<BracketedGaussian>(n, density, key.threshold);
  }
  bool carries_threshold() const override { return !published_; }
  int64_t EntriesMost(int64_t n, double density) const override {
    const int64_t k = EntriesAsked(density, n);
    return std::min(n, published_ ? kCap * k : BracketedGaussian::EntriesMost(k));
  }
  int passes() const override { return published_ ? 3 : 2; }
  std::string cost_keys() const override { return published_ ? "loop=published" : ""; }

 private:
  bool published_ = false;
};

DTRAIN_COMPRESSOR("gaussiank", GaussianK,
                  "about the largest entries of each unit, by a threshold from its mean and "
                  "deviation, adjusted until their number is near the wanted one");

}  // namespace
}  // namespace dtrain
