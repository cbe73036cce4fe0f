// How far a simulation is, while it runs: its steps, its virtual time and the time left.
//
//   ps_ssp  run 3/6  step 230/9380  ####----------  12.3 virtual s  0:42 left
#pragma once

#include <string>

#include "framework/core/progress_display.h"
#include "framework/core/time.h"

namespace dtrain {

// Where a simulation is.
struct SimulationPoint {
  double steps_done = 0;  // of all workers together
  double steps = 0;
  Nanos time = 0;  // virtual
};

class SimulateProgress {
 public:
  // `name`: which one of `runs` it is, where there are several; `run` counts them from 1.
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
