// The sparse collective "oktopk": Ok-Topk's sparse all-reduce (Li and Hoefler, PPoPP 2022, section 3).
//
// The vector is cut into regions, one for each rank, so that each holds about as many selected entries.
// Everyone sends its entries to the owners of their regions, who add them in rank order; the sums whose
// magnitude reaches a threshold that is the same everywhere are gathered.  Regions are cut anew every
// kRegionPeriod calls of a unit, the threshold is the exact k-th largest sum every kThresholdPeriod
// calls, or when k changes, and is kept in between.  With one rank everything selected is kept.
//
// What differs from the paper, and what it changes:
// - There is no local threshold that is reused and drifts (times 1.03, over 1.012): what a worker brings
//   is what its compressor has selected anew.  So any compressor can be summed, each brings about k entries
//   in every step, and a selection costs its own passes each time.
// - The k-th largest sum is found by counting (KthLargest), 4 sums of 256 counts, where the authors gather
//   all sums at every rank, which grows with k P: the same threshold.
// - Owners add when all has arrived, in rank order, where the authors add what comes first: the sum is
//   canonical.
// - Boundaries are the mean over those ranks that have selected anything: the others have no wish.
// - Where owners have kept very different numbers, all that was kept is dealt out evenly by position, where
//   the paper moves entries to neighbours.  One exchange, and every rank knows from the counts what goes
//   where; an entry may go further.
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
  // Entries move to other ranks when the most that one owner has are more than so many times the mean.
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
  SparseList sums_;  // of this rank's region
  KthLargest largest_;
  int64_t counted_ = 0;
  ThresholdCut threshold_cut_;
  SparseList kept_;  // of sums_
  CountGather count_gather_;
  std::vector<SparseCount> counts_;  // in the gather, by rank
  SparseMessages messages_;
  SparseAllGather gather_;
  Difference difference_;
};

}  // namespace dtrain
