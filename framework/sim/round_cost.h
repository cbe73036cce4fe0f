// How long one round of a collective takes: as long as its slowest NIC and its slowest rank.
#pragma once

#include <cstdint>

#include "framework/sim/network_model.h"

namespace dtrain {

// What the busiest do in a round.
struct RoundLoad {
  bool between_nodes = false;  // anything passes a NIC, be it empty
  bool inside_node = false;    // anything goes from one rank to another of its node
  double nic_bytes = 0;        // through one direction of a NIC
  double inside_bytes = 0;     // from one rank to another of its node
  int64_t messages = 0;        // sent and received by a rank
  double added_bytes = 0;      // by a rank
};

// In ns.  `NIC`: the busiest NIC's bucket, which what passes is taken from.
double RoundNs(const NetworkModel& network, const RoundLoad& load, double add_ns_per_byte,
               TokenBucket& nic);

}  // namespace dtrain
