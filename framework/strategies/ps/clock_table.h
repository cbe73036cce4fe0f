// ClockTable: how many steps each worker has finished, and how many the slowest one has.
//
// The minimum is kept, never searched: workers are counted by their lead over the slowest, and the
// minimum moves on when nobody is left at lead 0.  Finish, Remove and Lead take O(1) time,
// amortised, whatever the number of workers; memory follows workers + the fastest one's lead.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "framework/core/state_visitor.h"

namespace dtrain::ps {

class ClockTable {
 public:
  explicit ClockTable(int workers);

  int workers() const { return static_cast<int>(finished_.size()); }
  int64_t Finished(int worker) const { return finished_[worker]; }
  int64_t Minimum() const { return minimum_; }  // of those not removed
  int64_t Lead(int worker) const { return finished_[worker] - minimum_; }

  // `worker` has finished one more step.  True when the minimum moved.
  bool Finish(int worker);

  // A worker that ended, died or left holds nobody back.  True when the minimum moved.
  bool Remove(int worker);
  // One that was removed takes part again, as one of the slowest.
  void Add(int worker);
  bool Removed(int worker) const { return finished_[worker] == kRemoved; }

  void Visit(StateVisitor& visitor);

  // "815 815 813 811" ("-": removed); of many workers
  // "811..815, slowest 3 (811), 2 (813), 0 (815)".
  std::string Describe() const;

 private:
  static constexpr int64_t kRemoved = -1;

  bool Advance();
  void Recount();
  std::vector<int> SlowestFirst() const;  // those not removed
  std::string DescribeSlowest() const;

  std::vector<int64_t> finished_;  // by worker; all the state there is
  int64_t minimum_ = 0;
  std::deque<int> leads_;  // [l]: workers that lead the slowest one by l
};

}  // namespace dtrain::ps
