// RankWatch: watches the ranks of this machine if no supervisor does, as under a plain mpirun or srun.
//
// A stopped rank (SIGSTOP) cannot report anything, whatever it was doing, and the others would wait for it forever
// while data are loaded, evaluated or saved.  In the step loop the exchange's own watch may find it first
// (exchange/stall_watch.h).  The lowest rank of the machine that is not stopped itself reports it.
#pragma once

#include <functional>
#include <string>

#include "framework/core/ticker.h"
#include "framework/launch/rank_processes.h"

namespace dtrain {

class RankWatch {
 public:
  // Watches, from rank `rank`, the other ranks that `launcher` has started on this machine: its children.  `on_lost` is
  // called once, on the watch's thread, with the message: "rank 2 (pid 815) did not answer: ...".
  RankWatch(int rank, pid_t launcher, double stall_seconds,
            std::function<void(const std::string&)> on_lost);
  RankWatch(const RankWatch&) = delete;
  ~RankWatch();  // ends the thread

 private:
  void Look();

  const int rank_;
  const pid_t launcher_;
  const std::function<void(const std::string&)> on_lost_;
  StoppedRanks stopped_;  // only the watch's thread uses it and reported_
  bool reported_ = false;
  Ticker ticker_;
};

}  // namespace dtrain
