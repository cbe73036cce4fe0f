// The sparse collective "oktopk" is Ok-Topk's sparse all-reduce (Li and Hoefler, PPoPP 2022,
// section 3).
//
// The vector is split into regions, one for each rank, that have about equal numbers of selected
// entries.  Every rank sends its entries to the owners of their regions, which add them in rank
// order.  The sums whose magnitude reaches a common threshold are gathered.  Regions are computed
// anew every kRegionPeriod calls of a unit.  The threshold is the exact k-th largest sum every
// kThresholdPeriod calls, or when k changes, and is kept in between.  With one rank all selected
// entries are kept.
//
// Differences from the paper, and their effects:
// - There is no local threshold that is reused and adapted (times 1.03, divided by 1.012).  A worker sends what its
//   compressor has selected in this step.  So any compressor can be used and selects about k entries in every step, but
//   each selection costs its own passes over the vector.
// - The k-th largest sum is found by counting (KthLargestSum), with 4 sums of 256 counts.  The authors gather all sums on
//   every rank, which grows with k P.  The threshold is the same.
// - Owners add in rank order, when all entries have arrived, so the sum does not depend on the order of arrival.  The
//   authors add entries as they arrive.
// - Region boundaries are the mean over the ranks that have selected any entries.
// - If owners have kept very different numbers of entries, all kept entries are distributed evenly by position, while the
//   paper moves entries to neighbours.  It takes one exchange, which every rank can derive from the counts, but an entry
//   may be sent farther.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "framework/comm/sparse_all_gather.h"
#include "framework/comm/sparse_arithmetic.h"
#include "framework/comm/sparse_count_sum.h"
#include "framework/comm/sparse_queue.h"
#include "framework/comm/sparse_split.h"

namespace dtrain {

class OkTopK : public SparseQueue {
 public:
  ~OkTopK() override { GiveUp(); }
  static constexpr int64_t kRegionPeriod = 64;
  static constexpr int64_t kThresholdPeriod = 32;
  // Entries are redistributed if an owner has more than kUneven times the mean number of entries.
  static constexpr int64_t kUneven = 4;

  OkTopK(Transport& transport, const CollectiveOptions& options);

  int64_t periodic_bytes_received() const override { return threshold_bytes_; }
  void Visit(StateVisitor& visitor) override;

 private:
  struct Unit {
    int64_t n = 0;
    int64_t k = 0;
    int64_t calls = 0;
    uint32_t threshold = 0;           // magnitude bits
    std::vector<int64_t> boundaries;  // P + 1
  };

  void PlanRegions();
  void PlanSplit();
  void PlanThreshold();
  void PlanGather();

  Unit& unit() { return units_[call().unit]; }
  bool RegionsAreDue() { return unit().calls % kRegionPeriod == 0; }
  void BeginUnit();
  void Vote();
  void CutRegions();
  void BeginSplit();
  bool CountSums();
  void Balance();
  Range ShareOf(Rank rank, const std::vector<int64_t>& begins) const;
  void MoveShares(const std::vector<int64_t>& begins);

  std::map<int, Unit> units_;
  bool threshold_is_due_ = false;
  int64_t threshold_bytes_ = 0;
  int64_t bytes_before_ = 0;

  std::vector<int64_t> votes_;
  CountSum count_sum_;
  SparseSplit split_;
  std::vector<SparseEntries> to_owners_;
  RegionSum region_sum_;
  SparseList sums_;  // the sums of this rank's region
  KthLargestSum largest_;
  int64_t counted_ = 0;
  ThresholdCut threshold_cut_;
  SparseList kept_;  // the entries of sums_ above the threshold
  CountGather count_gather_;
  std::vector<SparseCount> counts_;  // entries of each rank in the final all-gather
  SparseMessages messages_;
  SparseAllGather gather_;
  Difference difference_;
};

}  // namespace dtrain
