// Admission: which workers may start their next step under a staleness bound.
//
// The bound is the key `staleness`: steps that a worker may lead the slowest one by.
//
// SSP's rule (Ho et al., "More effective distributed ML via a stale synchronous parallel parameter
// server", NIPS 2013, section 3): a worker that has finished c steps may start the next one once
// every worker has finished c - bound.  So the slowest one is never held.  A request that must wait
// is kept, and granted by the step of another worker that ends the wait: nobody asks twice.
//
// The others are looked at only when the minimum moved, which W workers do at most once in W steps:
// O(1) a step, amortised.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "framework/core/state_visitor.h"
#include "framework/strategies/ps/clock_table.h"

namespace dtrain::ps {

constexpr int64_t kNoBound = std::numeric_limits<int64_t>::max();

class Admission {
 public:
  Admission(int workers, int64_t bound) : bound_(bound), clocks_(workers), waiting_(workers) {}

  // `worker` wants to start its next step.  Returns the workers that may start now.
  std::vector<int> Request(int worker);
  // `worker` has finished a step, and wants to start the next or not.  Returns, in ascending order,
  // the workers that may start now.
  std::vector<int> Finish(int worker, bool wants_next);

  // Whether its request is kept.
  bool Waits(int worker) const { return waiting_[worker] != 0; }
  // It may start, though it is beyond the bound.
  void LetGo(int worker);

  // `worker` takes part no more, and its request is forgotten.  Returns the workers that may start
  // now.
  std::vector<int> Leave(int worker);
  // `worker` takes part, as one of the slowest.
  void Join(int worker) { clocks_.Add(worker); }

  const ClockTable& clocks() const { return clocks_; }
  int64_t lead_max() const { return lead_max_; }  // the largest lead with which one could start

  void Visit(StateVisitor& visitor);
  std::string Describe() const;  // "clocks 815 815 813 811, waiting {0, 1}, bound 3"

 private:
  std::vector<int> Grant(int begin, int end);

  const int64_t bound_;
  ClockTable clocks_;
  std::vector<int64_t> waiting_;  // by worker: 1 while its request is kept
  int64_t lead_max_ = 0;
};

}  // namespace dtrain::ps
