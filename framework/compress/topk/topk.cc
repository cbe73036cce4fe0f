// topk: the k largest entries by magnitude, exactly; k = max(1, floor(density * n)) of each unit.
//
// Shi, Chu, Cheung, See, "Understanding Top-k Sparsification in Distributed Deep Learning", arXiv
// 1911.08772 (2019), section 2; k as in the authors' code (hclhkbu/GaussianK-SGD).  Differences: of equal magnitudes
// the lowest places are chosen, so that the choice is a function of the values, and zeros are not sent.
#include "framework/compress/sampled_largest.h"

namespace dtrain {
namespace {

class TopK : public Compressor {
 public:
  void Configure(config::Reader&, CompressConfig&) override {}
  std::unique_ptr<Selection> Select(int64_t n, double density, const SelectionKey&) const override {
    return SelectLargest(n, EntriesMost(n, density));
  }
  int64_t EntriesMost(int64_t n, double density) const override { return EntriesAsked(density, n); }
  int passes() const override { return 2; }  // a sample, and one scan
};

DTRAIN_COMPRESSOR("topk", TopK, "the largest entries of each unit, exactly");

}  // namespace
}  // namespace dtrain
