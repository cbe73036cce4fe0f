// Shows the progress line of a running simulation: its steps, its virtual time and the time left.
//
//   ps_ssp  run 3/6  step 230/9380  ####----------  12.3 virtual s  0:42 left
#pragma once

#include <string>

#include "framework/core/progress_display.h"
#include "framework/core/time.h"

namespace dtrain {

// Holds the position of a simulation.
struct SimulationPoint {
  double steps_done = 0;  // of all workers together
  double steps = 0;
  Nanos time = 0;  // virtual
};

class SimulateProgress {
 public:
  // `name` is shown if there are several runs; `run` counts from 1 to `runs`.
  SimulateProgress(std::string name, int run, int runs, Nanos now, ProgressDisplay display = {});

  void Tick(const SimulationPoint& at, Nanos now);
  void End() { display_.Clear(); }

 private:
  ProgressDisplay::Parts PartsOf(const SimulationPoint& at) const;

  const std::string name_;
  const int run_, runs_;
  ProgressDisplay display_;
  ProgressRate rate_;
};

}  // namespace dtrain
