// A schedule of faults for a simulated run: drawn from a seed, told in one line each, and made shorter.
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
    kStop,   // a rank does nothing for a while
    kSlow,   // some steps of a worker take longer
    kDelay,  // a message, and so what follows it between these ranks, arrives later
    kNaN,    // a gradient has one
    kDeath,  // of a worker
  };
  Kind kind;
  int64_t who = 0;     // rank or worker
  int64_t to = 0;      // kDelay: the other rank
  int64_t number = 0;  // of the message, or of the worker's step; kDeath: behind so many steps
  int64_t count = 0;   // kSlow: steps
  double at = 0;       // kStop: seconds
  double size = 0;     // seconds; kSlow: a factor

  std::string Describe() const;  // "rank 2 does nothing for 0.2 s from 1.3 s"
};

using FaultSchedule = std::vector<Fault>;

std::string Describe(const FaultSchedule& schedule);

// What may happen in a run of so many virtual seconds, in which each worker makes about so many steps.
struct Possible {
  int ranks = 1, workers = 1;
  int64_t steps = 1;
  double seconds = 0;
  bool envelopes = true;  // between ranks
  bool nan = false;
  bool deaths = false;  // of workers
};
FaultSchedule DrawSchedule(Draws& draws, const Possible& possible);

// For the run of `setup`, whose workers would take `steps` (seconds, by worker) without faults.  NaNs are the
// source's.
void Apply(const FaultSchedule& schedule, std::vector<std::vector<double>> steps,
           SimulationSetup& setup);

// The shortest schedule it comes to that still `fails`, by leaving faults out, half of them at first, and
// then making those that are left smaller and earlier.
FaultSchedule Shrink(FaultSchedule schedule,
                     const std::function<bool(const FaultSchedule&)>& fails);

}  // namespace dtrain
