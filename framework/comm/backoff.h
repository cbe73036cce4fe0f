// Backoff: what a thread does while it polls and nothing moves.
//
// First it yields until it has polled for about 50 us of its own time: a message that is on its way
// is then seen within a microsecond, and a peer that shares the core gets the core.  The time in
// which others ran on it does not count, so that more ranks than cores do not put one another to
// sleep while they exchange; but when a yield has cost a scheduler's whole slice, somebody computes
// there, and sleeping is the quicker way to get the core back.  After that it sleeps, 20 us at
// first, then longer each time up to 200 us, so that a rank that waits for long does not hold a
// core.
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
  static constexpr Nanos kPollMax = 1'000;  // what one poll counts at most
  static constexpr Nanos kSlice = 1'000'000;
  static constexpr Nanos kSleepMin = 20'000;
  static constexpr Nanos kSleepMax = 200'000;

  void Pause();
  void Reset() { *this = Backoff(); }  // something moved: the next Pause yields again

  // What the next Pause does, when it comes at time `now`: sleeps so long, or yields (0).
  Nanos NextSleep(Nanos now);

 private:
  Nanos last_ = -1;  // time of the last Pause; -1: not waiting
  Nanos spun_ = 0;
  Nanos sleep_ = 0;
};

// Polls sums of any kind (collective.h, sparse_collective.h) until this one is done.
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
