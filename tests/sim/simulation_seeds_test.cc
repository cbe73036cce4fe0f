// Runs thousands of unusual clusters: with any delays, jitter, stragglers and pauses the protocols' rules hold and
// every run ends.  support/seeds.h has their number; a failure prints its seed.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/sim/scenario.h"
#include "tests/support/seeds.h"

namespace dtrain {
namespace {

struct Chosen {
  Scenario scenario;
  int64_t bound;  // of a worker's lead
  int64_t steps;  // of all workers
  int64_t late;   // steps that may start while the message about the run's end is in flight
};

Chosen Choose(const std::string& name, uint64_t seed) {
  Draws draws(seed);
  const int workers = static_cast<int>(draws.Between(1, 7));
  const int64_t staleness = draws.Between(0, 4);
  std::string keys = "servers: " + std::to_string(draws.Between(1, 3));
  if (draws.Between(0, 1) == 1) keys += ", placement: colocated";
  if (name == "ps_ssp") keys += ", staleness: " + std::to_string(staleness);
  if (name == "ps_dssp") {
    keys += fmt::format(", staleness: {}, staleness_max: {}", staleness / 2, staleness);
  }
  const bool prefetch = name == "ps_asp" && draws.Between(0, 1) == 1;
  if (prefetch) keys += ", prefetch: true";
  Chosen chosen{Scenario(name, workers, keys),
                name == "ps_ssp" || name == "ps_dssp" ? staleness : 0, 0, 0};
  SimulationSetup& setup = chosen.scenario.setup;
  setup.seed = seed;
  const int64_t global_steps = draws.Between(1, 25);
  setup.exchange.rule.last_samples = setup.exchange.rule.batch * global_steps;
  setup.exchange.rule.checkpoint_every_steps = draws.Between(0, 1) * draws.Between(1, 9);
  chosen.steps = workers * global_steps;
  // Server 0, next to the leader, has learnt that a step starts before it lets the worker start another, and its answer
  // arrives after the leader's message.  So each of the other workers starts one more step.  With prefetched weights, a
  // step that a boundary held back already has its answer: two more may start, and one more of the worker that
  // completes the run.
  chosen.late =
      prefetch && setup.exchange.rule.checkpoint_every_steps > 0 ? 2 * workers - 1 : workers - 1;
  ClusterConfig& cluster = setup.cluster;
  cluster.slowdown.clear();
  for (int w = 0; w < workers; ++w) cluster.slowdown.push_back(draws.Real(1, 5));
  cluster.step_seconds = draws.Real(0.0001, 0.05);
  cluster.jitter = draws.Between(0, 1) * draws.Real(0, 2);
  cluster.pauses = {draws.Real(0, 0.2), draws.Real(0, 0.5)};
  cluster.memory_gbyte_s = draws.Real(0.001, 10);
  cluster.network.per_node = static_cast<int>(draws.Between(1, 3));
  cluster.network.queue =
      draws.Between(0, 1) == 1 ? NetworkModel::Queue::kFair : NetworkModel::Queue::kFifo;
  cluster.network.between_nodes = {draws.Real(0.001, 10), draws.Real(0.1, 20'000),
                                   draws.Between(0, 1) * draws.Between(100, 100'000),
                                   draws.Real(10, 20)};
  return chosen;
}

void Check(const std::string& name, uint64_t seed) {
  SCOPED_TRACE(name + ", seed " + std::to_string(seed));
  const Chosen chosen = Choose(name, seed);
  const SimulationResult result = chosen.scenario.Run();  // throws if an actor waits for ever
  int64_t steps = 0;
  for (const SimulatedWorker& worker : result.workers) steps += worker.steps;
  const int64_t workers = static_cast<int64_t>(result.workers.size());
  // Every gradient is applied once: its samples count, and so does its staleness.
  ASSERT_EQ(result.end.samples_applied, 8 * steps);
  ASSERT_EQ(result.protocol.gradients(), steps);
  ASSERT_GE(steps, chosen.steps);
  ASSERT_LE(steps, chosen.steps + chosen.late);
  if (name == "ps_asp") return;
  if (name == "ps_bsp") {
    ASSERT_EQ(steps, chosen.steps);
    ASSERT_EQ(result.protocol.staleness.size(), 1u);  // no gradient is stale
    return;
  }
  ASSERT_LE(result.protocol.clock_lead_max, chosen.bound);
  // Between a worker's pull and its push each of the others ends at most 2 s + 1 steps.
  ASSERT_LE(static_cast<int64_t>(result.protocol.staleness.size()) - 1,
            (workers - 1) * (2 * chosen.bound + 1));
}

class SimulationSeedsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(SimulationSeedsTest, TheRulesHold) {
  for (const int64_t seed : SeedRange(Seeds())) {
    if (HasFatalFailure()) return;
    Check(GetParam(), static_cast<uint64_t>(seed));
  }
}

INSTANTIATE_TEST_SUITE_P(Protocols, SimulationSeedsTest,
                         ::testing::Values("ps_bsp", "ps_ssp", "ps_dssp", "ps_asp"));

// ------------------------------------------------------------------ nodes and groups

// Returns the cluster of a seed with another strategy.
Scenario InSameCluster(const std::string& name, const std::string& keys, uint64_t seed) {
  const Scenario like = Choose("ps_asp", seed).scenario;
  Scenario scenario(name, like.setup.exchange.placement().workers, keys);
  scenario.setup.seed = seed;
  scenario.setup.cluster = like.setup.cluster;
  scenario.setup.exchange.rule = like.setup.exchange.rule;
  return scenario;
}

TEST(SimulationSeeds, InhadAppliesOrDropsEveryGradientOnce) {
  for (const int64_t seed : SeedRange(Seeds())) {
    if (testing::Test::HasFatalFailure()) return;
    Draws draws(seed + 1'000'000);
    const int64_t n = draws.Between(1, 4), s_max = draws.Between(1, 9);
    const std::string late = draws.Of({"wait", "drop", "keep"});
    const std::string keys = fmt::format(
        "servers: {}, placement: {}, n: {}, s_max: {}, late: {}, modulate: {}, broadcast: {}, "
        "lockstep: {}, pipelined: {}, in_interval: {}, pull_timeout: {}",
        draws.Between(1, 3), draws.Of({"dedicated", "colocated"}), n, s_max, late,
        draws.Of({"exact", "mean", "off"}), draws.Of({"all", "pulled"}), draws.Between(0, 3) == 0,
        draws.Between(0, 1) == 1, draws.Between(0, 1) * 20, draws.Between(0, 1) * 0.3);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, keys));
    Scenario scenario = InSameCluster("inhad", keys, static_cast<uint64_t>(seed));
    std::vector<int>& node_of = scenario.setup.exchange.actors.placement.node_of;
    for (size_t w = 0; w < node_of.size(); ++w) node_of[w] = static_cast<int>(w / 2);
    const SimulationResult result = scenario.Run();  // throws if an actor waits for ever
    int64_t steps = 0;
    for (const SimulatedWorker& worker : result.workers) steps += worker.steps;
    ASSERT_EQ(result.protocol.gradients() + result.protocol.Total("dropped"), steps);
    ASSERT_TRUE(late == "drop" || result.protocol.Total("dropped") == 0);
    const auto oldest = static_cast<int64_t>(result.protocol.staleness.size()) - 1;
    ASSERT_TRUE(late == "keep" || oldest <= s_max) << oldest;
  }
}

TEST(SimulationSeeds, GsspAppliesEveryGradientOnceAndKeepsTheBoundInAGroup) {
  for (const int64_t seed : SeedRange(Seeds())) {
    if (testing::Test::HasFatalFailure()) return;
    Draws draws(seed + 2'000'000);
    const int workers =
        Choose("ps_asp", static_cast<uint64_t>(seed)).scenario.setup.exchange.placement().workers;
    const int64_t staleness = draws.Between(0, 4), servers = draws.Between(1, workers);
    const std::string inside = draws.Of({"ssp", "ssp", "bsp"});
    const std::string keys = fmt::format(
        "servers: {}, placement: {}, staleness: {}, inside: {}, exchange: {}, exchange_every: {}, "
        "groups: {}, grouping: {}, equal_size: {}",
        servers, draws.Of({"dedicated", "colocated"}), staleness, inside,
        draws.Of({"gradients", "averaging"}), draws.Between(0, 5),
        draws.Between(0, 1) * draws.Between(1, servers), draws.Of({"measured", "static"}),
        draws.Between(0, 1) == 1);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, keys));
    Scenario scenario = InSameCluster("gssp", keys, static_cast<uint64_t>(seed));
    BoundarySchedule& rule = scenario.setup.exchange.rule;
    rule.epoch_samples = rule.batch * draws.Between(6, 9);
    rule.last_samples *= 2;
    rule.strategy_every_epochs = 1;
    rule.strategy_after_steps = 7;
    if (draws.Between(0, 1) == 1) {
      scenario.setup.exchange.actors.compress = MakeCompress("{name: gdtopk}");
    }
    const SimulationResult result = scenario.Run();
    int64_t steps = 0;
    for (const SimulatedWorker& worker : result.workers) steps += worker.steps;
    ASSERT_EQ(result.protocol.gradients(), steps);
    // Besides gradients, residuals are flushed, one to each group's server.
    const int64_t flushed = result.protocol.Total("up_transfers") - steps;
    const auto idle = static_cast<int64_t>(result.protocol.idle_servers.size());
    ASSERT_TRUE(result.protocol.Total("regroups") > 0 || flushed % (servers - idle) == 0)
        << flushed;
    ASSERT_EQ(flushed > 0, scenario.setup.exchange.actors.compress.on());
    ASSERT_TRUE(inside == "bsp" || result.protocol.clock_lead_max <= staleness);
  }
}

// ------------------------------------------------------------------ death

// Draws up to three deaths at any time of a run of about this length; at least one worker survives.
void ChooseDeaths(Draws& draws, double seconds, SimulationSetup& setup) {
  const Placement& placement = setup.exchange.placement();
  const int per_node = setup.cluster.per_node();
  for (int64_t i = draws.Between(1, 3); i > 0; --i) {
    Death death;
    death.worker = draws.Between(0, placement.workers - 1);
    if (draws.Between(0, 1) == 1) {
      death.at_step = draws.Between(1, 12);
    } else {
      death.at_seconds = draws.Real(0, seconds);
    }
    setup.cluster.deaths.push_back(death);
    if (!CheckDeaths(setup.cluster.deaths, placement, per_node).empty()) {
      setup.cluster.deaths.pop_back();
    }
  }
  setup.exchange.actors.may_fail = !setup.cluster.deaths.empty();
}

// Every submitted gradient is applied, dropped or lost once, and the living workers do the steps of the dead ones.
void CheckAccounts(const Scenario& scenario, int64_t& died) {
  const SimulationResult result = scenario.Run();  // throws if an actor waits for ever
  int64_t steps = 0;
  for (const SimulatedWorker& worker : result.workers) {
    steps += worker.steps;
    died += worker.died >= 0 ? 1 : 0;
  }
  ASSERT_EQ(result.protocol.gradients() + result.protocol.Total("dropped") +
                result.protocol.Total("lost"),
            steps);
  ASSERT_EQ(result.end.samples_applied, 8 * steps);
  ASSERT_GE(result.end.samples_applied, scenario.setup.exchange.rule.last_samples);
}

TEST(SimulationSeeds, InhadAccountsForEveryGradientWhenWorkersAndNodesDie) {
  int64_t died = 0;
  for (const int64_t seed : SeedRange(Seeds())) {
    if (testing::Test::HasFatalFailure()) return;
    Draws draws(seed + 3'000'000);
    const std::string keys = fmt::format(
        "servers: {}, n: {}, s_max: {}, late: {}, modulate: {}, broadcast: {}, lockstep: {}, "
        "pipelined: {}, in_interval: {}, pull_timeout: 10000",
        draws.Between(1, 3), draws.Between(1, 4), draws.Between(1, 9),
        draws.Of({"wait", "drop", "keep"}), draws.Of({"exact", "mean", "off"}),
        draws.Of({"all", "pulled"}), draws.Between(0, 3) == 0, draws.Between(0, 1) == 1,
        draws.Between(0, 1) * 20);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, keys));
    Scenario scenario = InSameCluster("inhad", keys, static_cast<uint64_t>(seed));
    std::vector<int>& node_of = scenario.setup.exchange.actors.placement.node_of;
    for (size_t w = 0; w < node_of.size(); ++w) node_of[w] = static_cast<int>(w / 2);
    ChooseDeaths(draws, ToSeconds(scenario.Run().time), scenario.setup);
    CheckAccounts(scenario, died);
  }
  EXPECT_GT(died, Seeds() / 2);
}

TEST(SimulationSeeds, AspAppliesEveryGradientThatADeadWorkerHasSent) {
  int64_t died = 0;
  for (const int64_t seed : SeedRange(Seeds())) {
    if (testing::Test::HasFatalFailure()) return;
    SCOPED_TRACE(seed);
    Draws draws(seed + 4'000'000);
    const std::string keys =
        fmt::format("servers: {}, prefetch: {}", draws.Between(1, 3), draws.Between(0, 1) == 1);
    Scenario scenario = InSameCluster("ps_asp", keys, static_cast<uint64_t>(seed));
    ChooseDeaths(draws, ToSeconds(scenario.Run().time), scenario.setup);
    CheckAccounts(scenario, died);
  }
  EXPECT_GT(died, Seeds() / 2);
}

TEST(SimulationSeeds, ASeedRepeatsItsRun) {
  for (const char* name : {"ps_bsp", "ps_ssp", "ps_dssp", "ps_asp"}) {
    EXPECT_EQ(Choose(name, 7).scenario.Run().state_sha256,
              Choose(name, 7).scenario.Run().state_sha256);
  }
}

}  // namespace
}  // namespace dtrain
