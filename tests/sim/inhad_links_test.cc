// Tests InHAD where one of four nodes has a link ten times slower than the others'.
#include <gtest/gtest.h>

#include <string>

#include "tests/sim/scenario.h"

namespace dtrain {
namespace {

constexpr int kAll = 16, kPerNode = 4, kSlowNode = 3;

struct Rates {
  double others = 0;   // gradients a second of the workers of fast nodes
  double slow = 0;     // of those of the slow one
  double updates = 0;  // a second
  int64_t oldest = 0;  // staleness
};

// A transfer of the model takes a quarter of a step, and from a server to the slow node `incoming` times as long.
Rates RatesOf(const std::string& keys, double incoming) {
  Scenario scenario("inhad", kAll, keys);
  std::vector<int>& node_of = scenario.setup.exchange.actors.placement.node_of;
  for (int worker = 0; worker < kAll; ++worker) node_of[worker] = worker / kPerNode;
  scenario.setup.cluster.network.per_node = kPerNode;
  scenario.setup.cluster.jitter = 0.1;
  scenario.setup.cluster.network.between_nodes = {
      .bandwidth_gbit_s = 32e-9 * kSize / (scenario.setup.cluster.step_seconds / 4),
      .latency_us = 50};
  scenario.setup.faults.slow_links = {{.node = kSlowNode, .incoming = incoming}};
  const SimulationResult result = scenario.Run();
  const double seconds = ToSeconds(result.time);
  Rates rates;
  for (int worker = 0; worker < kAll; ++worker) {
    const double rate = static_cast<double>(result.workers[worker].steps) / seconds;
    (node_of[worker] == kSlowNode ? rates.slow : rates.others) += rate;
  }
  rates.updates = static_cast<double>(result.protocol.Total("rounds")) / seconds;
  rates.oldest = static_cast<int64_t>(result.protocol.staleness.size()) - 1;
  return rates;
}

// In lockstep a worker waits for the next update.  With n = 2 the other nodes make it by themselves.
TEST(InhadLinks, ASlowLinkDelaysNoWorkerOfAnotherNode) {
  const std::string keys = "n: 2, lockstep: true";
  const Rates equal = RatesOf(keys, 1), slow = RatesOf(keys, 10);
  EXPECT_GT(slow.others, 0.97 * equal.others);
  EXPECT_LT(slow.slow, 0.7 * equal.slow);
  EXPECT_LE(slow.oldest, 5);
}

// The slow node's gradients get as old as two of its broadcasts take, and no older.  With two servers an update takes
// little more than its gradients' computing, for which there are fewer workers while the slow node receives weights.
TEST(InhadLinks, ASlowLinkDelaysNoUpdate) {
  struct Way {
    const char* keys;
    double least = 0.97;
    int64_t oldest = 6;
  };
  for (const Way& way :
       {Way{"late: keep"}, Way{"late: drop"}, Way{"late: wait, s_max: 6"},
        Way{"late: keep, broadcast: pulled"}, Way{"late: keep, servers: 2", 0.9, 9}}) {
    SCOPED_TRACE(way.keys);
    const Rates equal = RatesOf(way.keys, 1), slow = RatesOf(way.keys, 10);
    EXPECT_GT(slow.updates, way.least * equal.updates);
    EXPECT_GT(slow.others, 0.97 * equal.others);
    EXPECT_GT(slow.slow, 0.97 * equal.slow);
    EXPECT_LE(slow.oldest, way.oldest);
  }
}

// With `late: wait` updates wait for the slow node as far as the bound asks for it, though no worker does.
TEST(InhadLinks, TheBoundHoldsBehindASlowLink) {
  const std::string keys = "late: wait, s_max: 3";
  const Rates equal = RatesOf(keys, 1), slow = RatesOf(keys, 10);
  EXPECT_LE(slow.oldest, 3);
  EXPECT_LT(slow.updates, 0.9 * equal.updates);
  EXPECT_GT(slow.updates, 0.6 * equal.updates);
  EXPECT_GT(slow.others, 0.97 * equal.others);
}

}  // namespace
}  // namespace dtrain
