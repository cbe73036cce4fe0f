// ClockTable: the number of steps that each worker, and the slowest one, has finished.
//
// The minimum is maintained, not searched for: workers are counted by their lead over the slowest
// one, and the minimum increases when no worker is left at lead 0.  Finish, Remove and Lead take
// O(1) amortised time for any number of workers.  Memory is proportional to the number of workers
// plus the lead of the fastest one.
#pragma once

#include <cstdint>
#include <deque>
#include <iterator>
#include <string>
#include <vector>

#include "framework/core/state_visitor.h"

namespace dtrain::ps {

class ClockTable {
 public:
  explicit ClockTable(int workers);

  int workers() const { return static_cast<int>(finished_.size()); }
  int64_t Finished(int worker) const { return finished_[worker]; }
  int64_t Minimum() const { return minimum_; }  // of the workers that are not removed
  int64_t Lead(int worker) const { return finished_[worker] - minimum_; }
  // True if no worker has finished more steps; several may have finished as many.
  bool IsFastest(int worker) const { return Lead(worker) + 1 == std::ssize(leads_); }

  // Counts one more finished step of `worker`.  Returns true if the minimum moved.
  bool Finish(int worker);

  // Removes a worker that ended, died or left, so that it holds back no other.  Returns true if the
  // minimum moved.
  bool Remove(int worker);
  // Adds a removed worker again, as one of the slowest.
  void Add(int worker);
  bool Removed(int worker) const { return finished_[worker] == kRemoved; }

  void Visit(StateVisitor& visitor);

  // Returns "815 815 813 811" ("-": removed) or, for many workers, "811..815, slowest 3 (811), 2
  // (813), 0 (815)".
  std::string Describe() const;

 private:
  static constexpr int64_t kRemoved = -1;

  bool Advance();
  void Recount();
  std::vector<int> SlowestFirst() const;  // the workers that are not removed
  std::string DescribeSlowest() const;

  std::vector<int64_t> finished_;  // by worker; the members below are derived from it
  int64_t minimum_ = 0;
  // [l]: number of workers that lead the slowest one by l.  The last one is not 0.
  std::deque<int> leads_;
};

}  // namespace dtrain::ps
