// A schedule of faults for a simulated run: drawn from a seed, printed one per line, and shrunk.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/sim/simulation.h"
#include "tests/support/seeds.h"

namespace dtrain {

struct Fault {
  enum class Kind {
    kStop,   // a rank pauses
    kSlow,   // some steps of a worker take longer
    kDelay,  // a message, and later ones between these ranks, arrive later
    kNaN,    // a gradient contains a NaN
    kDeath,  // a worker dies
  };
  Kind kind;
  int64_t who = 0;     // rank or worker
  int64_t to = 0;      // kDelay: the other rank
  int64_t number = 0;  // of the message or of the worker's step; kDeath: steps before it
  int64_t count = 0;   // kSlow: steps
  double at = 0;       // kStop: seconds
  double size = 0;     // seconds; kSlow: a factor

  std::string Describe() const;  // "rank 2 does nothing for 0.2 s from 1.3 s"
};

using FaultSchedule = std::vector<Fault>;

std::string Describe(const FaultSchedule& schedule);

// The possible faults of a run of about this many virtual seconds, with this many steps per worker.
struct Possible {
  int ranks = 1, workers = 1;
  int64_t steps = 1;
  double seconds = 0;
  bool envelopes = true;  // between ranks
  bool nan = false;
  bool deaths = false;  // of workers
};
FaultSchedule DrawSchedule(Draws& draws, const Possible& possible);

// Applies the schedule to the run of `setup`, whose workers would take `steps` (seconds, by worker) without faults.
// The gradient source adds the NaNs.
void Apply(const FaultSchedule& schedule, std::vector<std::vector<double>> steps,
           SimulationSetup& setup);

// Returns a shorter schedule that still `fails`: leaves out faults, at first half of them, then makes the remaining
// ones smaller and earlier.
FaultSchedule Shrink(FaultSchedule schedule,
                     const std::function<bool(const FaultSchedule&)>& fails);

}  // namespace dtrain
