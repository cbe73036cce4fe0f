// gaussiank: about the largest entries, by a threshold from the mean and the deviation of a normal
// distribution, which is mended until the count is near k = max(1, floor(density * n)).
//
// Shi, Chu, Cheung, See, "Understanding Top-k Sparsification in Distributed Deep Learning", arXiv
// 1911.08772 (2019), Algorithm 1, as in the authors' code (hclhkbu/GaussianK-SGD):
//   threshold = mean + z * deviation       z: a normal number is beyond +-z with probability density
//   at most three times: count those with |u| > threshold; fewer than 2k/3: threshold *= 0.5; more
//   than 4k/3: threshold *= 1.5; else enough.  What was counted last is sent.
// Ours (`loop: bracketed`): it begins at the threshold of the unit's selection before, if that is
// known; where it has seen both too many and too few, the geometric mean of the two comes next;
// and if that does not end (equal magnitudes), the k largest are sent.
// In both: zeros are not sent and a negative threshold counts as 0.  The published loop may end with
// none, then the largest is sent; or with too many, then the largest 4 k.
#pragma once

#include "framework/compress/scan_selection.h"

namespace dtrain {

// The z that a standard normal number exceeds with probability `tail`, in (0, 0.5].  Acklam's rational
// approximation, after one Newton step on erfc: relative error below 1e-9 for tails down to 1e-12.
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
  // `begin`: a threshold, or 0.
  BracketedGaussian(int64_t n, double density, float begin, Isa isa = CpuIsa());
  float Threshold() const override;

  // No selection has more entries.
  static int64_t EntriesMost(int64_t k);

 protected:
  Pass After(Pass done) override;

 private:
  Pass Test();
  Pass SendLargest();

  const int64_t k_;
  const double density_;
  double threshold_;           // the one that is tested
  double low_ = 0, high_ = 0;  // let too many through, and too few; 0: none is known
  int scans_ = 0, tests_ = 0;
  bool exact_ = false;  // the last scan was for the k largest
};

}  // namespace dtrain
