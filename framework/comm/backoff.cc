#include "framework/comm/backoff.h"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <ctime>

namespace dtrain {
namespace {

// Linux extends a sleep by the thread's timer slack, 50 us by default.
void SleepExactly(Nanos duration) {
  thread_local const int slack = ::prctl(PR_SET_TIMERSLACK, 1'000, 0, 0, 0);
  (void)slack;
  const timespec time{0, static_cast<long>(duration)};
  ::nanosleep(&time, nullptr);
}

}  // namespace

Nanos Backoff::NextSleep(Nanos now) {
  const Nanos polled = last_ < 0 ? 0 : now - last_;
  spun_ += polled >= kSlice ? kSpin : std::min(polled, kPollMax);
  last_ = now;
  if (spun_ >= kSpin) sleep_ = std::clamp(2 * sleep_, kSleepMin, kSleepMax);
  return sleep_;
}

void Backoff::Pause() {
  const Nanos sleep = NextSleep(WallNow());
  if (sleep == 0) {
    ::sched_yield();
  } else {
    SleepExactly(sleep);
  }
}

}  // namespace dtrain
