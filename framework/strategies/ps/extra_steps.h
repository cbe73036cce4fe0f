// ExtraSteps: the number of steps that a worker may go beyond SSP's bound under DSSP (Zhao et al.,
// "Dynamic stale synchronous parallel distributed training for deep learning", ICDCS 2019).
//
// Only the fastest worker gets extra steps: one than which none has finished more.  The paper's text
// was not available; two independent transcriptions of its algorithm 1 say so.
//
// A worker that has just exceeded the bound would wait for the slowest one's next push.  From the
// last two pushes of both workers it is predicted when the slowest one pushes next, and when this
// worker would push if it made 1, 2, ... more steps.  The worker gets the number of steps, from 0
// to `most`, after which its push is nearest to a push of the slowest, since it waits least there.
// An overdue push is expected at once, and so is the first one after a boundary.  A worker with
// only one push so far gets no steps, since nothing can be predicted.
//
// This is decided once.  When the steps are used up, the worker waits as under SSP until it is
// within the bound, and gets no new steps before it exceeds the bound again.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/core/state_visitor.h"
#include "framework/core/time.h"
#include "framework/strategies/ps/clock_table.h"

namespace dtrain::ps {

class ExtraSteps {
 public:
  explicit ExtraSteps(int workers)
      : last_(workers, 0),
        interval_(workers, kUnknown),
        left_(workers, kUndecided),
        pushed_(workers, 0) {}

  void OnPush(int worker, Nanos now);
  // Starts new intervals, since no worker computes at a boundary.
  void OnBoundary() { pushed_.assign(pushed_.size(), 0); }
  // Call it when `worker` has just pushed and is beyond the bound.  Returns true if it may start
  // the next step nevertheless, and uses up one of its extra steps.  Their number is predicted when
  // the worker exceeds the bound.
  bool Take(int worker, const ClockTable& clocks, int64_t most);
  // Call it when `worker` is within the bound again.
  void Forget(int worker) { left_[worker] = kUndecided; }

  void Visit(StateVisitor& visitor);

 private:
  static constexpr int64_t kUnknown = 0;
  static constexpr int64_t kUndecided = -1;

  int64_t Predict(int worker, const ClockTable& clocks, int64_t most) const;

  // All are indexed by worker.
  std::vector<int64_t> last_;      // time of the last push
  std::vector<int64_t> interval_;  // between the last two pushes; at least 1
  std::vector<int64_t> left_;      // extra steps that are left; kUndecided within the bound
  std::vector<int64_t> pushed_;    // 1 if it has pushed since the last boundary
};

}  // namespace dtrain::ps
