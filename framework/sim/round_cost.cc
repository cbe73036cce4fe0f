#include "framework/sim/round_cost.h"

#include <algorithm>

namespace dtrain {

double RoundNs(const NetworkModel& network, const RoundLoad& load, double add_ns_per_byte,
               TokenBucket& nic) {
  const double overhead = network.message_overhead_us * 1e3;
  // The overhead of the first message at the sender and of the last one at the receiver is added
  // below; that of the others overlaps with the transfers.
  const double others = overhead * static_cast<double>(load.messages - 2);
  const double nic_ns = std::max(0.0, nic.TimeFor(load.nic_bytes));
  double slowest = 0;
  if (load.between_nodes) {
    slowest = network.between_nodes.latency_us * 1e3 + std::max(nic_ns, others);
  }
  if (load.inside_node) {
    const double copy_ns = load.inside_bytes / network.inside_node.bytes_per_ns();
    slowest = std::max(slowest, network.inside_node.latency_us * 1e3 + std::max(copy_ns, others));
  }
  const double ns = slowest + 2 * overhead + load.added_bytes * add_ns_per_byte;
  nic.Pass(load.nic_bytes, ns);
  return ns;
}

}  // namespace dtrain
