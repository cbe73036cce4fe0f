// Faults: disturbances of a simulated run, at given times, that keep the contract of the transport
// (tests/faults).  Slow steps are given by a trace (SimulationSetup::trace); deaths, and
// disturbances at random, by the cluster config.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/core/time.h"

namespace dtrain {

struct Faults {
  // The rank does nothing for a while, neither its worker nor its exchange, like a suspended
  // process.
  struct Stop {
    Rank rank = 0;
    Nanos at = 0, lasts = 0;
  };
  // A message arrives later, and later messages between the same ranks do not overtake it.
  // Messages between other ranks do.
  struct Delay {
    Rank from = 0, to = 0;
    int64_t message = 0;  // number of the message between these ranks, from 0
    Nanos by = 0;
  };
  // The number of times that the node's link is slower than the others', from the beginning.
  struct SlowLink {
    int node = 0;
    double incoming = 1, outgoing = 1;
  };
  std::vector<Stop> stops;
  std::vector<SlowLink> slow_links;
  std::vector<Delay> delays;  // at most one per message
};

}  // namespace dtrain
