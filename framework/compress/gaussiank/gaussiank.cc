#include "framework/compress/gaussiank/gaussiank.h"

#include <algorithm>
#include <cmath>

namespace dtrain {
namespace {

constexpr double kLowerFactor = 0.5, kHigherFactor = 1.5;  // the threshold
constexpr int kPublishedTests = 3;
constexpr int kCap = 4;  // times k, what the published loop may send
// Of the bracketed loop.  Most tests are made among the survivors of a scan.
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
      ended_ = true;  // none: the largest one
      return ScanFrom(std::max(moments().largest, 1u));
    }
    threshold_ *= few ? kLowerFactor : kHigherFactor;
  }
  return ScanFrom(LeastAbove(threshold_));
}

// Twice k stay at hand in a scan, so that it is known of every higher threshold whether it lets too
// many through.
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

// After a scan.
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

// Where no threshold can be found.  Enough are at hand, or may be anywhere.
ScanSelection::Pass BracketedGaussian::SendLargest() {
  exact_ = true;
  if (survivors().size() >= k_ || survivors().least() == 1) return KeepLargest(k_);
  return ScanFrom(1);
}

// Below the smallest that is sent, where the loop has found no threshold.
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
    const std::string loop =
        reader.String("loop", "bracketed")
            .OneOf({"bracketed", "published"})
            .Help(
                "how the threshold is mended: bracketed: from the one before, between one that "
                "is too low and one that is too high; published: by halves, at most three times");
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

 private:
  bool published_ = false;
};

DTRAIN_COMPRESSOR("gaussiank", GaussianK,
                  "about the largest entries of each unit, by a threshold from its mean and "
                  "deviation that is mended until their number is near");

}  // namespace
}  // namespace dtrain
