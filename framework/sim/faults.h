// Faults: what may go wrong in a simulated run without breaking what the transport promises, at times
// of one's choosing (tests/faults).  Slow steps are a trace's (SimulationSetup::trace), deaths and what
// happens at random are the cluster's.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/core/time.h"

namespace dtrain {

struct Faults {
  // The rank does nothing for a while, neither its worker nor its exchange, as when its process is stopped.
  struct Stop {
    Rank rank = 0;
    Nanos at = 0, lasts = 0;
  };
  // A message arrives later, and those that follow it between these ranks no earlier than it does.  Messages
  // between other ranks overtake it.
  struct Delay {
    Rank from = 0, to = 0;
    int64_t message = 0;  // between these ranks, counted from 0
    Nanos by = 0;
  };
  std::vector<Stop> stops;
  std::vector<Delay> delays;  // of a message one at most
};

}  // namespace dtrain
