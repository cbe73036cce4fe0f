// The time of one round of a collective, determined by its busiest NIC and its busiest rank.
#pragma once

#include <cstdint>

#include "framework/cluster/network_model.h"

namespace dtrain {

// Holds maxima over the NICs and ranks in a round.
struct RoundLoad {
  bool between_nodes = false;  // some message passes a NIC, even an empty one
  bool inside_node = false;    // some message is sent between ranks of one node
  double nic_bytes = 0;        // through one direction of a NIC
  double inside_bytes = 0;     // from one rank to another of its node
  int64_t messages = 0;        // sent and received by a rank
  double added_bytes = 0;      // arithmetic of a rank
};

// Returns the time of the round in ns.  `nic`: the token bucket of the busiest NIC, from which the
// bytes are taken.
double RoundNs(const NetworkModel& network, const RoundLoad& load, double add_ns_per_byte,
               TokenBucket& nic);

}  // namespace dtrain
