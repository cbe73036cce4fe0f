// Admission: decides which workers may start their next step under a staleness bound.
//
// The bound is the key `staleness`: the number of steps that a worker may lead the slowest one by.
//
// SSP's rule (Ho et al., "More effective distributed ML via a stale synchronous parallel parameter
// server", NIPS 2013, section 3): a worker that has finished c steps may start the next one once
// every worker has finished c - bound.  So the slowest one is never held.  A request that must wait
// is kept, and is granted when another worker's step ends the wait; a worker does not ask twice.
//
// The requests of other workers are examined only when the minimum clock has moved, which W workers
// cause at most once in W steps.  That takes O(1) per step, amortised.
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
  // `worker` has finished a step; `wants_next` is also a Request.  Returns, in ascending order, the
  // workers that may start now.
  std::vector<int> Finish(int worker, bool wants_next);

  // True if a request of `worker` is waiting.
  bool Waits(int worker) const { return waiting_[worker] != 0; }
  // Grants the waiting request of `worker` though it is beyond the bound.
  void LetGo(int worker);

  // Removes `worker` and its request.  Returns the workers that may start now.
  std::vector<int> Leave(int worker);
  // Adds `worker` as one of the slowest.
  void Join(int worker) { clocks_.Add(worker); }

  const ClockTable& clocks() const { return clocks_; }
  int64_t lead_max() const { return lead_max_; }  // the largest lead at which a worker could start

  void Visit(StateVisitor& visitor);
  std::string Describe() const;  // "clocks 815 815 813 811, waiting {0, 1}, bound 3"

 private:
  std::vector<int> Grant(int begin, int end);

  const int64_t bound_;
  ClockTable clocks_;
  std::vector<int64_t> waiting_;  // by worker: 1 while its request waits
  int64_t lead_max_ = 0;
};

}  // namespace dtrain::ps
