// ExtraSteps: how far beyond SSP's bound a worker may go under DSSP (Zhao et al., "Dynamic stale
// synchronous parallel distributed training for deep learning", ICDCS 2019).
//
// A worker that has just exceeded the bound would wait for the slowest one's next push.  From the last
// two pushes of both it is predicted when the slowest one pushes next, and when this worker would push
// if it did 1, 2, ... steps more.  It gets the number of steps, from 0 to `most`, behind which its push
// comes nearest to one of the slowest's: there it waits least.  A push that is overdue is expected at
// once, and so is the first one behind a boundary.  Where a worker has pushed once only, nothing is
// predicted, and none is given.
//
// That is decided once: when the steps are used up it waits as under SSP, until it is within the bound,
// and nothing is predicted for it before it exceeds the bound again.
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
  // Nobody computes for a while, which is no part of an interval.
  void OnBoundary() { pushed_.assign(pushed_.size(), 0); }
  // `worker`, which pushed now, is beyond the bound.  Whether it may start the next step all the same:
  // one of the steps that it was given when it exceeded the bound, which it may do now.
  bool Take(int worker, const ClockTable& clocks, int64_t most);
  // It is within the bound again.
  void Forget(int worker) { left_[worker] = kUndecided; }

  void Visit(StateVisitor& visitor);

 private:
  static constexpr int64_t kUnknown = 0;
  static constexpr int64_t kUndecided = -1;

  int64_t Predict(int worker, const ClockTable& clocks, int64_t most) const;

  // By worker.
  std::vector<int64_t> last_;      // time of its last push
  std::vector<int64_t> interval_;  // between its last two; at least 1
  std::vector<int64_t>
      left_;  // steps that it was given and has not started; kUndecided within the bound
  std::vector<int64_t> pushed_;  // 1 once it has, since the last boundary
};

}  // namespace dtrain::ps
