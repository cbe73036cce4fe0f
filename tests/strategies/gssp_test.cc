// Checks the rules of GSSP (gssp.md 8) on thousands of random histories.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/strategies/effect_writer.h"
#include "tests/strategies/gssp_rules.h"
#include "tests/strategies/histories.h"
#include "tests/strategies/strategies.h"

namespace dtrain::gssp {
namespace {

using world::World;

// Returns the initial groups, none of them empty.
std::vector<int64_t> GroupsOf(Draws& draws, int workers, int64_t servers, int64_t groups) {
  if (groups == 0) groups = draws.Between(1, servers);
  std::vector<int64_t> group_of;
  for (int worker = 0; worker < workers; ++worker) {
    group_of.push_back(worker < groups ? groups - 1 - worker : draws.Between(0, groups - 1));
  }
  return group_of;
}

// With a flush at the end no gradient remains in a residual.
Case CaseOf(uint64_t seed) {
  Draws draws(seed);
  Case run;
  world::Scenario& scenario = run.scenario;
  GsspOptions& options = run.options;
  scenario.workers = static_cast<int>(draws.Between(1, 8));
  // Groups are made from speeds after 20 steps, and may change two epochs later.
  scenario.steps = scenario.workers * (draws.Coin() ? draws.Between(2, 20) : draws.Between(20, 60));
  scenario.boundary_every = draws.Coin() ? 0 : draws.Between(scenario.workers, scenario.steps);
  scenario.epoch_steps = draws.Between(0, 3) == 0 ? 0 : scenario.workers * draws.Between(2, 12);
  scenario.drift_every = draws.Coin() ? 0 : scenario.workers * draws.Between(15, 30);
  const int64_t servers = draws.Between(1, scenario.workers);
  options.inside = draws.Between(0, 2) == 0 ? Inside::kBsp : Inside::kSsp;
  options.bound = options.inside == Inside::kBsp ? kBound : draws.Between(0, 4);
  options.between = draws.Between(0, 3) == 0 ? Between::kAveraging : Between::kGradients;
  options.scale_gradient = draws.Coin();
  options.exchange_every = draws.Coin() ? 0 : draws.Between(1, 6);
  options.measured = draws.Coin();
  options.equal_size = draws.Coin();
  options.groups = draws.Coin() ? 0 : draws.Between(1, servers);
  if (draws.Between(0, 3) == 0)
    options.group_of = GroupsOf(draws, scenario.workers, servers, options.groups);
  run.compresses = draws.Coin();
  run.flushes = run.compresses && draws.Coin();
  if (run.compresses) {
    scenario.compress =
        fmt::format("{{name: gdtopk, flush: {}, policy: {}}}", run.flushes ? "epoch" : "none",
                    draws.Coin() ? "contribution" : "speed_gap");
  }
  scenario.strategy = fmt::format(
      "{{name: gssp, servers: {}, staleness: {}, inside: {}, exchange: {}, scale: {}, "
      "exchange_every: {}, grouping: {}, equal_size: {}, groups: {}, group_of: [{}]}}",
      servers, options.bound, options.inside == Inside::kBsp ? "bsp" : "ssp",
      options.between == Between::kGradients ? "gradients" : "averaging",
      options.scale_gradient ? "gradient" : "share", options.exchange_every,
      options.measured ? "measured" : "static", options.equal_size,
      options.groups == 0 ? "auto" : std::to_string(options.groups),
      fmt::join(options.group_of, ", "));
  return run;
}

using Checks = world::Histories<Case, GsspRules, CaseOf>;

TEST(GsspHistories, KeepTheRules) {
  GsspRules::coverage = {};
  Checks::KeepTheRules();
  const Coverage& seen = GsspRules::coverage;
  const auto seeds = Seeds();
  EXPECT_GT(seen.regroups, seeds / 20);
  EXPECT_GT(seen.handovers, seen.regroups);
  // About one history in a hundred has a handover of a waiting worker, so that a hundred histories may have none.
  if (seeds >= 1000) {
    EXPECT_GT(seen.waiting_handovers, seeds / 1000);
  }
  EXPECT_GT(seen.flushes, seeds);
  EXPECT_GT(seen.blends, seeds);
}

TEST(GsspHistories, GoOnAsBeforeFromSavedState) { Checks::GoOnAsBeforeFromSavedState(); }

TEST(GsspPlantedBug, ALostExchangeIsFound) {
  const std::string verdict = Checks::FirstFailure([](World& world) {
    world.loses = [lost = 0](ActorId, ActorId, const Message& message) mutable {
      return message.kind == GroupSync::kKind && ++lost == 2;
    };
  });
  EXPECT_NE(verdict.find("has applied"), std::string::npos) << verdict;
}

TEST(GsspPlantedBug, ALostUpdateIsFound) {
  const std::string verdict = Checks::FirstFailure([](World& world) {
    world.loses_update = [lost = 0](ActorId, const Update&) mutable { return ++lost == 3; };
  });
  EXPECT_NE(verdict.find("samples instead of"), std::string::npos) << verdict;
}

// The actors allow one more step than the rules do.
TEST(GsspPlantedBug, ABoundOffByOneIsFound) {
  std::string verdict;
  for (uint64_t seed = 0; seed < 2000 && verdict.empty(); ++seed) {
    Case run = CaseOf(seed);
    if (run.options.bound < 1 || run.options.inside == Inside::kBsp) continue;
    --run.options.bound;
    verdict = Checks::WorldOf(run, seed).Run();
  }
  EXPECT_NE(verdict.find("leads its group"), std::string::npos) << verdict;
}

// ------------------------------------------------------------------ density

// At density 1 Compress moves everything, and the worker is that of a dense run (gssp.md 8.8).
TEST(GsspDensity, OfOneSendsAllThatWasGathered) {
  const auto strategy = MakeStrategy("{name: gssp, servers: 1}");
  const ActorSetup setup = SetupFor(*strategy, 1, 10, "{name: gdtopk}");
  const auto worker = std::move(MakeActors(*strategy, setup)[0]);
  std::string text;
  EffectWriter effects(setup.placement, 0, *worker, text, [](ActorId, const Message&) {});
  worker->OnMessage(setup.placement.CoordinatorId(), Pack(Density{1}), effects);
  worker->OnBegin(effects);
  worker->OnEnd({.samples = 4}, effects);
  EXPECT_EQ(text,
            "  w0: start step\n"
            "  w0: residual += gradient\n"
            "  w0: compress out from residual: density 1\n"
            "  w0 > s0 push: samples 4 + out [0, 10)\n"
            "  w0: clear out\n"
            "  w0: end step: samples 4, loss 0\n");
}

// Transfer times are known only at the density at which they were measured.
TEST(GsspDensity, ThatIsNewIsMeasuredAnew) {
  const auto strategy = MakeStrategy("{name: gssp, servers: 1}");
  const ActorSetup setup = SetupFor(*strategy, 1, 10, "{name: gdtopk}");
  const auto worker = std::move(MakeActors(*strategy, setup)[0]);
  std::string text;
  const auto at = [&](Nanos now) {
    return EffectWriter(
        setup.placement, 0, *worker, text, [](ActorId, const Message&) {}, now);
  };
  for (Nanos now = 1000; now < 8000; now += 1000) {
    EffectWriter begins = at(now), arrives = at(now + 5);
    worker->OnBegin(begins);
    worker->OnEnd({.samples = 4, .compute = 100}, begins);
    worker->OnMessage(setup.placement.ServerId(0), Pack(Weights{.held = 2}), arrives);
  }
  const auto stats_at_density = [&](double density) {
    EffectWriter effects = at(9000);
    worker->OnMessage(setup.placement.CoordinatorId(), Pack(Density{density}), effects);
    text.clear();
    worker->OnQuiescent({.steps = 7}, effects);
    return text;
  };
  EXPECT_EQ(stats_at_density(0.35),
            "  w0 > c0 stats: compute 100 ns, transfers 3 ns, steps 7, epochs 0\n");
  EXPECT_EQ(stats_at_density(0.25),
            "  w0 > c0 stats: compute 100 ns, transfers unknown, steps 7, epochs 0\n");
}

}  // namespace
}  // namespace dtrain::gssp
