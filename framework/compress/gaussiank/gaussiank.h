// gaussiank selects approximately the largest entries, by a threshold from the mean and deviation of a normal
// distribution, which is adjusted until the count is near k = max(1, floor(density * n)).
//
// Shi, Chu, Cheung, See, "Understanding Top-k Sparsification in Distributed Deep Learning", arXiv
// 1911.08772 (2019), Algorithm 1, as in the authors' code (hclhkbu/GaussianK-SGD):
//   threshold = mean + z * deviation       z: a normal number is beyond +-z with probability density
//   at most three times: count those with |u| > threshold; fewer than 2k/3: threshold *= 0.5; more
//   than 4k/3: threshold *= 1.5; else enough.  The entries of the last count are sent.
// Our variant (`loop: bracketed`) starts from the threshold of the unit's previous selection, if that is known.  Once
// it has seen both a threshold with too many entries and one with too few, it tries their geometric mean; if that does
// not end (equal magnitudes), the k largest are sent.  In both, zeros are not sent and a negative threshold counts as
// 0.  If the published loop ends with no entry, the largest is sent; if it ends with more than 4 k, the largest 4 k.
#pragma once

#include "framework/compress/scan_selection.h"

namespace dtrain {

// Returns the z that a standard normal number exceeds with probability `tail`, in (0, 0.5].  Uses Acklam's rational
// approximation and one Newton step on erfc: the relative error is below 1e-9 for tails down to 1e-12.
double UpperNormalQuantile(double tail);

class PublishedGaussian : public ScanSelection {
 public:
  PublishedGaussian(int64_t n, double density, Isa isa = CpuIsa());

 protected:
  Pass After(Pass done) override;

 private:
  const int64_t k_;
  const double density_;
  double threshold_ = 0;
  int tests_ = 0;
  bool ended_ = false;
};

class BracketedGaussian : public ScanSelection {
 public:
  // `begin` is the first threshold, or 0.
  BracketedGaussian(int64_t n, double density, float begin, Isa isa = CpuIsa());
  float Threshold() const override;

  // Returns an upper bound of a selection's entries.
  static int64_t EntriesMost(int64_t k);

 protected:
  Pass After(Pass done) override;

 private:
  Pass Test();
  Pass SendLargest();

  const int64_t k_;
  const double density_;
  double threshold_;           // the threshold under test
  double low_ = 0, high_ = 0;  // thresholds with too many and with too few entries; 0: unknown
  int scans_ = 0, tests_ = 0;
  bool exact_ = false;  // the last scan is for the k largest
};

}  // namespace dtrain
