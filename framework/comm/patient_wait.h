// PatientWait: waits for another rank between steps.  A slow disk or a large data set may delay
// that rank for long, and a dead rank never answers.
//
//   PatientWait wait(peer);
//   while (!transport.Test(request)) wait.Pause();
//
// It logs a warning every half minute, and throws StalledError (exit code 7) after half an hour.
// Time in which this process itself was suspended (Ctrl-Z, scontrol suspend) counts as half a
// minute at most, since the other ranks were suspended as well.
#pragma once

#include "framework/comm/backoff.h"
#include "framework/comm/transport.h"

namespace dtrain {

class PatientWait {
 public:
  static constexpr Nanos kSayAfter = 30'000'000'000;
  static constexpr int kSaidAtMost = 60;
  // Warnings more before a rank gives up waiting for rank 0.  Rank 0 may itself wait for a rank
  // that hangs; it then gives up first, and its error names that rank.
  static constexpr int kMoreForRank0 = 2;

  static constexpr Rank kAllRanks = -1;

  explicit PatientWait(Rank peer) : peer_(peer), say_at_(WallNow() + kSayAfter) {}

  void Pause() {
    backoff_.Pause();
    LookAt(WallNow());
  }
  // Logs or throws if it is time to.  Tests call it with times of their own.
  void LookAt(Nanos now);

 private:
  const Rank peer_;
  Nanos say_at_;
  int said_ = 0;
  Backoff backoff_;
};

}  // namespace dtrain
