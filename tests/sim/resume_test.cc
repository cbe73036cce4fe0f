// A simulation that is saved at a boundary and resumed equals the uninterrupted one to the bit: weights, every actor's
// state and the virtual time, for every asynchronous strategy on all kinds of clusters.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "framework/core/random.h"
#include "tests/sim/scenario.h"
#include "tests/support/seeds.h"
#include "tests/support/source_at_once.h"

namespace dtrain {
namespace {

// One seed here takes as long as thirty elsewhere.
int64_t Clusters() { return std::max<int64_t>(Seeds() / 30, 1); }

// Gradients that depend on the weights, the worker and its mini-batch.
class KnownGradients : public SourceAtOnce {
 public:
  explicit KnownGradients(int64_t samples) : samples_(samples) {}
  StepReport Compute(int worker, int64_t step, const Blob& weights, float* gradients) override {
    const Random random(3, Purpose::kSelfTest, static_cast<uint64_t>(worker),
                        static_cast<uint64_t>(step));
    for (int64_t i = 0; i < kSize; ++i) {
      gradients[i] = 0.1F * weights.f32()[i] + random.Uniform(static_cast<uint64_t>(i), -1, 1);
    }
    steps[worker].push_back(step);
    return {.samples = samples_, .loss_sum = 0.3 * static_cast<double>(step + worker)};
  }
  std::map<int, std::vector<int64_t>> steps;  // by worker: steps that were requested

 private:
  const int64_t samples_;
};

// A strategy, with a compressor after '+'.
struct Case {
  std::string strategy, compress;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.strategy << one.compress; }

std::string KeysOf(const Case& name, int workers, Draws& draws) {
  const bool gssp = name.strategy == "gssp";
  std::string keys = fmt::format("servers: {}", draws.Between(1, gssp ? workers : 3));
  if (draws.Coin()) keys += ", placement: colocated";
  if (name.strategy == "ps_ssp") keys += fmt::format(", staleness: {}", draws.Between(0, 4));
  if (name.strategy == "ps_asp" && draws.Coin()) keys += ", prefetch: true";
  if (gssp) {
    keys += fmt::format(", staleness: {}, exchange_every: {}, inside: {}", draws.Between(0, 3),
                        draws.Between(0, 5), draws.Of({"ssp", "ssp", "bsp"}));
    keys += ", exchange: " + draws.Of({"gradients", "averaging"});
  }
  if (name.strategy == "inhad") {
    keys += fmt::format(", n: {}, late: {}, modulate: {}, in_interval: {}, pull_timeout: {}",
                        draws.Between(1, workers), draws.Of({"wait", "drop", "keep"}),
                        draws.Of({"exact", "mean", "off"}), draws.Between(0, 1) * 7,
                        draws.Of({"0", "0.1", "30"}));
    if (draws.Coin()) keys += ", pipelined: true";
    if (draws.Coin()) keys += ", broadcast: pulled";
  }
  return keys;
}

void ChooseCluster(int workers, Draws& draws, ClusterConfig& cluster) {
  cluster.slowdown.clear();
  const bool alike = draws.Coin();  // then many events happen at the same time
  for (int w = 0; w < workers; ++w) {
    cluster.slowdown.push_back(alike ? 1 + w % 2 : draws.Real(1, 3));
  }
  cluster.step_seconds = draws.Coin() ? 0.01 : draws.Real(0.001, 0.05);
  cluster.jitter = draws.Between(0, 1) * draws.Real(0, 1);
  cluster.pauses = {draws.Between(0, 1) * draws.Real(0, 0.2), draws.Real(0, 0.2)};
  cluster.memory_gbyte_s = draws.Real(0.001, 10);
  NetworkModel& network = cluster.network;
  network.per_node = static_cast<int>(draws.Between(1, 3));
  network.queue = draws.Coin() ? NetworkModel::Queue::kFair : NetworkModel::Queue::kFifo;
  network.share_deviation = draws.Between(0, 1) * 0.4;
  network.message_overhead_us = draws.Between(0, 1) * 3.5;
  // Some NICs cannot refill their bucket during quiescence.
  network.between_nodes = {draws.Coin() ? draws.Real(0.001, 10) : draws.Real(0.0002, 0.01),
                           draws.Real(0.1, 2000), draws.Between(0, 1) * draws.Between(100, 100'000),
                           draws.Real(10, 20)};
}

Scenario Choose(const Case& name, uint64_t seed) {
  Draws draws(seed);
  const int workers = static_cast<int>(draws.Between(2, 6));
  Scenario scenario(name.strategy, workers, KeysOf(name, workers, draws));
  SimulationSetup& setup = scenario.setup;
  setup.seed = seed;
  ExchangeSpec& spec = setup.exchange;
  spec.actors.compress = MakeCompress(name.compress);
  if (name.strategy == "inhad") {
    for (int w = 0; w < workers; ++w) spec.actors.placement.node_of[w] = w / 2;
  }
  if (draws.Coin()) spec.solver = MakeSolver("{name: adam, lr: 0.01}");
  const int64_t steps = draws.Between(12, 60);
  spec.rule.epoch_samples = spec.rule.batch * draws.Between(5, 20) + draws.Between(0, 5);
  spec.rule.last_samples = spec.rule.SamplesOf(steps);
  spec.rule.checkpoint_every_steps = draws.Between(2, 9);
  const Strategy::Boundaries boundaries = scenario.strategy->boundaries(spec.actors.compress);
  spec.rule.strategy_every_epochs = boundaries.every_epochs;
  spec.rule.strategy_after_steps = boundaries.after_steps;
  ChooseCluster(workers, draws, setup.cluster);
  return scenario;
}

// The state at a boundary, as in a checkpoint.
struct Saved {
  BoundaryState at;
  std::vector<float> weights;
  std::map<std::string, std::vector<float>> solver;
  int64_t updates = 0;
  std::map<Rank, StateRecord> actors, hosts;
  std::map<int, std::vector<int64_t>> steps;
};

SimulationResult RunAndSave(SimulationSetup setup, std::vector<Saved>& saved) {
  const std::vector<float> initial(kSize, 0.5F);
  KnownGradients gradients(8);
  setup.source = &gradients;
  setup.exchange.start.weights = initial;
  Simulation* running = nullptr;
  setup.at_boundary = [&](const BoundaryState& state, Nanos, const float* weights) {
    Saved boundary{state,
                   {weights, weights + kSize},
                   running->SolverState(),
                   running->Updates(),
                   {},
                   {},
                   gradients.steps};
    for (Rank rank = 0; rank < setup.exchange.placement().ranks(); ++rank) {
      Simulation::SavedRank own = running->Save(rank);
      boundary.actors[rank] = std::move(own.actors);
      boundary.hosts[rank] = std::move(own.host);
    }
    saved.push_back(std::move(boundary));
    return false;
  };
  Simulation simulation(setup);
  running = &simulation;
  return simulation.Run();
}

SimulationResult GoOn(SimulationSetup setup, const Saved& boundary, KnownGradients& gradients) {
  setup.source = &gradients;
  setup.exchange.start = {.samples_applied = boundary.at.samples_applied,
                          .updates = boundary.updates,
                          .weights = boundary.weights,
                          .solver = &boundary.solver,
                          .ranks = &boundary.actors};
  setup.hosts = &boundary.hosts;
  return Simulation(setup).Run();
}

// Counts in `resumed` the boundaries from which it resumed.
void Check(const Case& name, uint64_t seed, int64_t& resumed) {
  SCOPED_TRACE(fmt::format("{} {}, seed {}", name.strategy, name.compress, seed));
  const Scenario scenario = Choose(name, seed);
  std::vector<Saved> saved;
  const SimulationResult whole = RunAndSave(scenario.setup, saved);
  ASSERT_TRUE(whole.end.finite);
  for (size_t k = 0; k + 1 < saved.size(); ++k) {
    SCOPED_TRACE(k);
    ++resumed;
    KnownGradients gradients(8);
    const SimulationResult again = GoOn(scenario.setup, saved[k], gradients);
    ASSERT_EQ(again.time, whole.time);
    ASSERT_EQ(again.end.samples_applied, whole.end.samples_applied);
    ASSERT_EQ(again.weights, whole.weights);
    ASSERT_EQ(again.state_sha256, whole.state_sha256);
    EXPECT_EQ(again.loss, whole.loss);
    EXPECT_EQ(again.protocol.staleness, whole.protocol.staleness);
    EXPECT_TRUE(again.protocol.counts == whole.protocol.counts);
    EXPECT_EQ(again.traffic.bytes_sent, whole.traffic.bytes_sent);
    for (size_t w = 0; w < whole.workers.size(); ++w) {
      ASSERT_EQ(again.workers[w].steps, whole.workers[w].steps);
      EXPECT_EQ(again.workers[w].compute, whole.workers[w].compute);
      EXPECT_EQ(again.workers[w].wait, whole.workers[w].wait);
      // Every mini-batch is computed once and in order, over both runs.
      std::vector<int64_t> steps = saved[k].steps[static_cast<int>(w)];
      const std::vector<int64_t>& more = gradients.steps[static_cast<int>(w)];
      steps.insert(steps.end(), more.begin(), more.end());
      ASSERT_EQ(static_cast<int64_t>(steps.size()), whole.workers[w].steps);
      for (size_t i = 0; i < steps.size(); ++i) ASSERT_EQ(steps[i], static_cast<int64_t>(i));
    }
  }
}

class SimulationResumeTest : public ::testing::TestWithParam<Case> {};

TEST_P(SimulationResumeTest, GoesOnFromEveryBoundaryToTheSameBits) {
  int64_t resumed = 0;
  for (const int64_t seed : SeedRange(Clusters())) {
    Check(GetParam(), static_cast<uint64_t>(seed), resumed);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(resumed, 2 * Clusters());
}

// As after a checkpoint of a real run, which has no counts of simulated workers.
TEST(SimulationResume, CountsTheSamplesBeforeTheFirstStepThoughNoCountsWereSaved) {
  for (const char* strategy : {"allreduce", "ps_asp"}) {
    SCOPED_TRACE(strategy);
    Scenario scenario(strategy, 3);
    BoundarySchedule& rule = scenario.setup.exchange.rule;
    rule.epoch_samples = 5 * rule.batch + 7;  // every sixth global batch is smaller
    rule.last_samples = rule.SamplesOf(20);
    const SimulationResult whole = scenario.Run();
    scenario.setup.first_step = 8;
    scenario.setup.exchange.start.samples_applied =
        scenario.strategy->traits().lockstep ? rule.SamplesOf(8) : 8 * rule.batch;
    const SimulationResult resumed = scenario.Run();
    for (size_t w = 0; w < whole.workers.size(); ++w) {
      EXPECT_EQ(resumed.workers[w].steps, whole.workers[w].steps);
      EXPECT_EQ(resumed.workers[w].samples, whole.workers[w].samples);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, SimulationResumeTest,
    ::testing::Values(Case{"ps_asp", ""}, Case{"ps_ssp", ""},
                      Case{"ps_asp", "{name: topk, density: 0.05}"},
                      Case{"ps_ssp", "{name: topk, density: 0.05}"}, Case{"gssp", ""},
                      Case{"gssp", "{name: gdtopk}"}, Case{"gssp", "{name: gdtopk, flush: none}"},
                      Case{"inhad", ""}),
    [](const auto& info) {
      std::string name =
          info.param.strategy + info.param.compress.substr(0, info.param.compress.find(','));
      name += info.param.compress.find("none") != std::string::npos ? "_kept" : "";
      std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
      return name;
    });

}  // namespace
}  // namespace dtrain
