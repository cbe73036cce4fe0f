// Tests GSSP's groups in virtual time: which workers wait for which (gssp.md 8.3).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/sim/scenario.h"

namespace dtrain {
namespace {

// Returns the steps per second of the first two of four workers.
double RateOfTheFirstTwo(const std::string& strategy, const std::string& keys,
                         std::vector<double> slowdown) {
  Scenario scenario(strategy, 4, keys);
  const SimulationResult result = scenario.FreeLink().Slowdown(std::move(slowdown)).Run();
  const int64_t steps = result.workers[0].steps + result.workers[1].steps;
  return static_cast<double>(steps) / ToSeconds(result.time);
}

// The run ends with a step of the slowest worker, which may take one of its 50 seconds.
TEST(GsspGroups, AGroupIsAsFastWhateverAnotherOneWaitsFor) {
  for (const char* keys : {"servers: 2, staleness: 1, grouping: static",
                           "servers: 2, inside: bsp, grouping: static"}) {
    SCOPED_TRACE(keys);
    const double alone = RateOfTheFirstTwo("gssp", keys, {1, 1, 1, 1});
    EXPECT_NEAR(alone, 2 / 0.05, 0.5);
    for (const double slowest : {2.0, 5.0, 20.0}) {
      EXPECT_NEAR(RateOfTheFirstTwo("gssp", keys, {1, 1, 1, slowest}) / alone, 1, 0.03) << slowest;
    }
  }
}

TEST(GsspGroups, WithoutGroupsAllWaitForTheSlowest) {
  const double alone = RateOfTheFirstTwo("ps_ssp", "staleness: 1", {1, 1, 1, 1});
  EXPECT_NEAR(RateOfTheFirstTwo("ps_ssp", "staleness: 1", {1, 1, 1, 5}) / alone, 0.2, 0.03);
  const char* one_group = "servers: 1, staleness: 1";
  EXPECT_NEAR(RateOfTheFirstTwo("gssp", one_group, {1, 1, 1, 5}) / alone, 0.2, 0.03);
}

// Four workers keep a server's link busy all the time, so that steps take equally long whatever their compute: the
// shorter the compute, the longer the round trip.
TEST(GsspGroups, AreThoseOfComputeWhereServersLinksAreBusy) {
  for (const char* groups : {"auto", "4"}) {
    SCOPED_TRACE(groups);
    Scenario scenario("gssp", 16, std::string("servers: 4, staleness: 3, groups: ") + groups);
    std::vector<double> slowdown;
    for (int worker = 0; worker < 16; ++worker) slowdown.push_back(1 + 0.35 * (worker % 4));
    scenario.Slowdown(slowdown).Stragglers(0.1);
    scenario.setup.cluster.network.between_nodes.bandwidth_gbit_s = kSize * 32 / 0.03 / 1e9;
    scenario.setup.exchange.rule.strategy_after_steps = 20;
    const SimulationResult result = scenario.Run();
    EXPECT_EQ(result.protocol.Total("regroups"), 1);
    for (int worker = 0; worker < 16; ++worker) {
      const int64_t of_class = result.workers[worker % 4].protocol.group;
      EXPECT_EQ(result.workers[worker].protocol.group, of_class) << worker;
      if (worker > 0 && worker < 4) {
        EXPECT_NE(of_class, result.workers[0].protocol.group);
      }
    }
  }
}

}  // namespace
}  // namespace dtrain
