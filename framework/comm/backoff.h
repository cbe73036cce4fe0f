// Backoff: yields or sleeps for a thread that polls while nothing moves.
//
// First it yields until it has polled for about 50 us of its own time.  A message in flight is then
// seen within a microsecond, and a peer that shares the core gets the core.  Time in which other
// threads ran on the core does not count, so that ranks on too few cores do not put one another to
// sleep while they exchange messages.  If a yield takes a whole slice of the scheduler, another
// thread computes on the core, and sleeping is the faster way to get the core back.  After that it
// sleeps, 20 us at first, then longer each time up to 200 us, so that a rank that waits for long
// does not occupy a core.
//
//   Backoff backoff;
//   while (!transport.Test(request)) backoff.Pause();
#pragma once

#include <cstdint>

#include "framework/core/time.h"

namespace dtrain {

class Backoff {
 public:
  static constexpr Nanos kSpin = 50'000;
  static constexpr Nanos kPollMax = 1'000;  // one poll counts at most this much
  static constexpr Nanos kSlice = 1'000'000;
  static constexpr Nanos kSleepMin = 20'000;
  static constexpr Nanos kSleepMax = 200'000;

  void Pause();
  void Reset() { *this = Backoff(); }  // call it when something moved; the next Pause yields

  // Returns how long a Pause at time `now` sleeps; 0 if it yields.  Counts as a Pause.
  Nanos NextSleep(Nanos now);

 private:
  Nanos last_ = -1;  // time of the last Pause; -1: not waiting
  Nanos spun_ = 0;
  Nanos sleep_ = 0;
};

// Polls a Collective or a SparseCollective until the sum `ticket` is done.
template <class Sums>
void WaitForSum(Sums& sums, int64_t ticket) {
  Backoff backoff;
  while (!sums.Done(ticket)) {
    if (sums.Progress()) {
      backoff.Reset();
    } else {
      backoff.Pause();
    }
  }
}

}  // namespace dtrain
