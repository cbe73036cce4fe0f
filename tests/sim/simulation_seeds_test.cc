// Thousands of clusters that nobody would build: whatever delays, jitter, stragglers and pauses do,
// the protocols' rules hold and every run ends.  DTRAIN_SEEDS says how many; a failure names its
// seed.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <cstdlib>
#include <initializer_list>

#include "framework/core/random.h"
#include "tests/sim/scenario.h"

namespace dtrain {
namespace {

int64_t Seeds() {
  const char* const given = std::getenv("DTRAIN_SEEDS");
  return given == nullptr ? 1000 : std::atoll(given);
}

// Any number in [low, high], from its own place in the seed's stream.
class Choices {
 public:
  explicit Choices(uint64_t seed) : random_(seed, Purpose::kSelfTest) {}
  int64_t Whole(int64_t low, int64_t high) {
    return low +
           static_cast<int64_t>(random_.Below(next_++, static_cast<uint64_t>(high - low + 1)));
  }
  double Real(double low, double high) { return low + (high - low) * random_.Uniform(next_++); }

 private:
  Random random_;
  uint64_t next_ = 0;
};

struct Chosen {
  Scenario scenario;
  int64_t bound;  // of the lead
  int64_t steps;  // of all workers
  int64_t late;   // steps that may start while word travels that these have
};

Chosen Choose(const std::string& name, uint64_t seed) {
  Choices choices(seed);
  const int workers = static_cast<int>(choices.Whole(1, 7));
  const int64_t staleness = choices.Whole(0, 4);
  std::string keys = "servers: " + std::to_string(choices.Whole(1, 3));
  if (choices.Whole(0, 1) == 1) keys += ", placement: colocated";
  if (name == "ps_ssp") keys += ", staleness: " + std::to_string(staleness);
  if (name == "ps_dssp") {
    keys += fmt::format(", staleness: {}, staleness_max: {}", staleness / 2, staleness);
  }
  const bool prefetch = name == "ps_asp" && choices.Whole(0, 1) == 1;
  if (prefetch) keys += ", prefetch: true";
  Chosen chosen{Scenario(name, workers, keys),
                name == "ps_ssp" || name == "ps_dssp" ? staleness : 0, 0, 0};
  SimulationSetup& setup = chosen.scenario.setup;
  setup.seed = seed;
  const int64_t global_steps = choices.Whole(1, 25);
  setup.exchange.rule.last_samples = setup.exchange.rule.batch * global_steps;
  setup.exchange.rule.checkpoint_every_steps = choices.Whole(0, 1) * choices.Whole(1, 9);
  chosen.steps = workers * global_steps;
  // Server 0, the keeper's neighbour, has heard that a step starts before it lets the worker start
  // another, and its answer comes behind the keeper's word.  So each of the other workers starts
  // one step more.  What a rest held back has its answer already where weights are prefetched:
  // there it may be two, and one of the worker that completes the run.
  chosen.late =
      prefetch && setup.exchange.rule.checkpoint_every_steps > 0 ? 2 * workers - 1 : workers - 1;
  ClusterConfig& cluster = setup.cluster;
  cluster.slowdown.clear();
  for (int w = 0; w < workers; ++w) cluster.slowdown.push_back(choices.Real(1, 5));
  cluster.step_seconds = choices.Real(0.0001, 0.05);
  cluster.jitter = choices.Whole(0, 1) * choices.Real(0, 2);
  cluster.pauses = {choices.Real(0, 0.2), choices.Real(0, 0.5)};
  cluster.memory_gbyte_s = choices.Real(0.001, 10);
  cluster.network.per_node = static_cast<int>(choices.Whole(1, 3));
  cluster.network.queue =
      choices.Whole(0, 1) == 1 ? NetworkModel::Queue::kFair : NetworkModel::Queue::kFifo;
  cluster.network.between_nodes = {choices.Real(0.001, 10), choices.Real(0.1, 20'000),
                                   choices.Whole(0, 1) * choices.Whole(100, 100'000),
                                   choices.Real(10, 20)};
  return chosen;
}

void Check(const std::string& name, uint64_t seed) {
  SCOPED_TRACE(name + ", seed " + std::to_string(seed));
  const Chosen chosen = Choose(name, seed);
  const SimulationResult result = chosen.scenario.Run();  // throws where anybody waits for ever
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
    ASSERT_EQ(result.protocol.staleness.size(), 1u);  // all fresh
    return;
  }
  ASSERT_LE(result.protocol.clock_lead_max, chosen.bound);
  // Between a worker's pull and its push each of the others ends at most 2 s + 1 steps.
  ASSERT_LE(static_cast<int64_t>(result.protocol.staleness.size()) - 1,
            (workers - 1) * (2 * chosen.bound + 1));
}

class SimulationSeedsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(SimulationSeedsTest, TheRulesHold) {
  for (int64_t seed = 1; seed <= Seeds() && !HasFatalFailure(); ++seed) {
    Check(GetParam(), static_cast<uint64_t>(seed));
  }
}

INSTANTIATE_TEST_SUITE_P(Protocols, SimulationSeedsTest,
                         ::testing::Values("ps_bsp", "ps_ssp", "ps_dssp", "ps_asp"));

// ------------------------------------------------------------------ nodes and groups

const char* AnyOf(Choices& choices, std::initializer_list<const char*> words) {
  return *(words.begin() + choices.Whole(0, static_cast<int64_t>(words.size()) - 1));
}

// The cluster of a seed, with another strategy on it.
Scenario InSameCluster(const std::string& name, const std::string& keys, uint64_t seed) {
  const Scenario like = Choose("ps_asp", seed).scenario;
  Scenario scenario(name, like.setup.exchange.placement().workers, keys);
  scenario.setup.seed = seed;
  scenario.setup.cluster = like.setup.cluster;
  scenario.setup.exchange.rule = like.setup.exchange.rule;
  return scenario;
}

TEST(SimulationSeeds, InhadAppliesOrDropsEveryGradientOnce) {
  for (int64_t seed = 1; seed <= Seeds() && !testing::Test::HasFatalFailure(); ++seed) {
    Choices choices(static_cast<uint64_t>(seed) + 1'000'000);
    const int64_t n = choices.Whole(1, 4), s_max = choices.Whole(1, 9);
    const std::string late = AnyOf(choices, {"wait", "drop", "keep"});
    const bool times_out = choices.Whole(0, 3) == 0;
    const std::string keys = fmt::format(
        "servers: {}, placement: {}, n: {}, s_max: {}, late: {}, modulate: {}, broadcast: {}, "
        "lockstep: {}, pipelined: {}, in_interval: {}, pull_timeout: {}",
        choices.Whole(1, 3), AnyOf(choices, {"dedicated", "colocated"}), n, s_max, late,
        AnyOf(choices, {"exact", "mean", "off"}), AnyOf(choices, {"all", "pulled"}),
        choices.Whole(0, 3) == 0, choices.Whole(0, 1) == 1, choices.Whole(0, 1) * 20,
        times_out ? 0.3 : 0.0);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, keys));
    Scenario scenario = InSameCluster("inhad", keys, static_cast<uint64_t>(seed));
    std::vector<int>& node_of = scenario.setup.exchange.actors.placement.node_of;
    for (size_t w = 0; w < node_of.size(); ++w) node_of[w] = static_cast<int>(w / 2);
    const SimulationResult result = scenario.Run();  // throws where anybody waits for ever
    int64_t steps = 0;
    for (const SimulatedWorker& worker : result.workers) steps += worker.steps;
    ASSERT_EQ(result.protocol.gradients() + result.protocol.dropped, steps);
    ASSERT_TRUE(late == "drop" || times_out || result.protocol.dropped == 0);
    const auto oldest = static_cast<int64_t>(result.protocol.staleness.size()) - 1;
    ASSERT_TRUE(late == "keep" || times_out || oldest <= s_max) << oldest;
  }
}

TEST(SimulationSeeds, GsspAppliesEveryGradientOnceAndKeepsTheBoundInAGroup) {
  for (int64_t seed = 1; seed <= Seeds() && !testing::Test::HasFatalFailure(); ++seed) {
    Choices choices(static_cast<uint64_t>(seed) + 2'000'000);
    const int workers =
        Choose("ps_asp", static_cast<uint64_t>(seed)).scenario.setup.exchange.placement().workers;
    const int64_t staleness = choices.Whole(0, 4), servers = choices.Whole(1, workers);
    const std::string inside = AnyOf(choices, {"ssp", "ssp", "bsp"});
    const std::string keys = fmt::format(
        "servers: {}, placement: {}, staleness: {}, inside: {}, exchange: {}, exchange_every: {}, "
        "groups: {}, grouping: {}, equal_size: {}",
        servers, AnyOf(choices, {"dedicated", "colocated"}), staleness, inside,
        AnyOf(choices, {"gradients", "averaging"}), choices.Whole(0, 5),
        choices.Whole(0, 1) * choices.Whole(1, servers), AnyOf(choices, {"measured", "static"}),
        choices.Whole(0, 1) == 1);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, keys));
    Scenario scenario = InSameCluster("gssp", keys, static_cast<uint64_t>(seed));
    RestRule& rule = scenario.setup.exchange.rule;
    rule.epoch_samples = rule.batch * choices.Whole(6, 9);
    rule.last_samples *= 2;
    rule.strategy_every_epochs = 1;
    rule.strategy_after_steps = 7;
    if (choices.Whole(0, 1) == 1) {
      scenario.setup.exchange.actors.compress = MakeCompress("{name: gdtopk}");
    }
    const SimulationResult result = scenario.Run();
    int64_t steps = 0;
    for (const SimulatedWorker& worker : result.workers) steps += worker.steps;
    ASSERT_EQ(result.protocol.gradients(), steps);
    // Beside gradients, residuals are flushed: one to each server.
    const int64_t flushed = result.protocol.up_transfers - steps;
    ASSERT_EQ(flushed % servers, 0);
    ASSERT_EQ(flushed > 0, scenario.setup.exchange.actors.compress.on());
    ASSERT_TRUE(inside == "bsp" || result.protocol.clock_lead_max <= staleness);
  }
}

TEST(SimulationSeeds, ASeedRepeatsItsRun) {
  for (const char* name : {"ps_bsp", "ps_ssp", "ps_dssp", "ps_asp"}) {
    EXPECT_EQ(Choose(name, 7).scenario.Run().state_sha256,
              Choose(name, 7).scenario.Run().state_sha256);
  }
}

}  // namespace
}  // namespace dtrain
