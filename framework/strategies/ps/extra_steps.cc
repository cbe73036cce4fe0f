#include "framework/strategies/ps/extra_steps.h"

#include <algorithm>
#include <cstdlib>

#include "framework/strategies/visit.h"

namespace dtrain::ps {

void ExtraSteps::OnPush(int worker, Nanos now) {
  if (pushed_[worker] != 0) interval_[worker] = std::max<int64_t>(1, now - last_[worker]);
  last_[worker] = now;
  pushed_[worker] = true;
}

bool ExtraSteps::Take(int worker, const ClockTable& clocks, int64_t most) {
  if (left_[worker] == kUndecided) {
    left_[worker] = clocks.IsFastest(worker) ? Predict(worker, clocks, most) : 0;
  }
  if (left_[worker] == 0) return false;
  --left_[worker];
  return true;
}

// If several workers are the slowest, the one whose push is expected last counts, since the wait
// lasts until then.
int64_t ExtraSteps::Predict(int worker, const ClockTable& clocks, int64_t most) const {
  const int64_t now = last_[worker], own = interval_[worker];
  int64_t next = 0, interval = 1;
  for (int other = 0; other < clocks.workers(); ++other) {
    if (clocks.Removed(other) || clocks.Lead(other) > 0) continue;
    if (interval_[other] == kUnknown) return 0;
    const int64_t expected = std::max(now, last_[other] + interval_[other]);
    if (expected < next) continue;
    next = expected;
    interval = interval_[other];
  }
  if (own == kUnknown) return 0;
  int64_t best = 0, least = next - now;
  for (int64_t steps = 1; steps <= most && least > 0; ++steps) {
    const int64_t after = now + steps * own - next;  // the slowest's next push
    const int64_t behind = after > 0 ? after % interval : 0;
    const int64_t gap = after <= 0 ? -after : std::min(behind, interval - behind);
    if (gap >= least) continue;
    least = gap;
    best = steps;
  }
  return best;
}

void ExtraSteps::Visit(StateVisitor& visitor) {
  VisitFixed(visitor, "push_times", last_);
  VisitFixed(visitor, "push_intervals", interval_);
  VisitFixed(visitor, "extra_steps", left_);
  VisitFixed(visitor, "has_pushed", pushed_);
}

}  // namespace dtrain::ps
