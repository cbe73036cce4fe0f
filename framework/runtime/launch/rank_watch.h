// RankWatch: looks after the ranks of this machine where no supervisor does, as under a plain mpirun
// or srun.
//
// A rank that somebody stopped (SIGSTOP) can say nothing, whatever it was doing, and the others would
// wait for it for ever while data are loaded, evaluated or saved; in the step loop the exchange's own
// watch may find it first (exchange/stall_watch.h).  The lowest rank of the machine that is not
// stopped itself says so.
#pragma once

#include <functional>
#include <string>

#include "framework/core/ticker.h"
#include "framework/runtime/launch/rank_processes.h"

namespace dtrain {

class RankWatch {
 public:
  // Of rank `rank`, and of the others that `launcher` has started on this machine: its children.
  // `on_lost` is called once, on the watch's thread, with what to say: "rank 2 (pid 815) did not
  // answer: ...".
  RankWatch(int rank, pid_t launcher, double stall_seconds,
            std::function<void(const std::string&)> on_lost);
  RankWatch(const RankWatch&) = delete;
  ~RankWatch();  // ends the thread

 private:
  void Look();

  const int rank_;
  const pid_t launcher_;
  const std::function<void(const std::string&)> on_lost_;
  StoppedRanks stopped_;  // the watch's thread's alone, as told_
  bool told_ = false;
  Ticker ticker_;
};

}  // namespace dtrain
