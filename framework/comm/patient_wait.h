// PatientWait: a wait for another rank between steps, where a slow disk or a large data set may keep it for
// long, and a dead one for ever.
//
//   PatientWait wait(peer);
//   while (!transport.Test(request)) wait.Pause();
//
// It says every half minute that it waits, and throws StalledError (exit 7) after half an hour.  A time in which
// this process itself stood still (Ctrl-Z, scontrol suspend) counts as half a minute at most: the others stood
// still as well.
#pragma once

#include "framework/comm/backoff.h"
#include "framework/comm/transport.h"

namespace dtrain {

class PatientWait {
 public:
  static constexpr Nanos kSayAfter = 30'000'000'000;
  static constexpr int kSaidAtMost = 60;
  // Most ranks wait for rank 0, which may wait for one that hangs: who it was, rank 0 knows, and so it is
  // the one to say it.
  static constexpr int kMoreForRank0 = 2;

  static constexpr Rank kAllRanks = -1;

  explicit PatientWait(Rank peer) : peer_(peer), say_at_(WallNow() + kSayAfter) {}

  void Pause() {
    backoff_.Pause();
    LookAt(WallNow());
  }
  // The half of it that a test can call with times of its own.
  void LookAt(Nanos now);

 private:
  const Rank peer_;
  Nanos say_at_;
  int said_ = 0;
  Backoff backoff_;
};

}  // namespace dtrain
