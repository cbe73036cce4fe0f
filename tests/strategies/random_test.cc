// Runs thousands of random histories of each protocol, and checks that the oracle finds planted bugs.  support/seeds.h
// has their number.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/strategies/random_world.h"
#include "tests/support/seeds.h"

namespace dtrain {
namespace {

// `name` is a protocol, or one with a compressor: "ps_asp+topk".
Scenario ScenarioOf(const std::string& name, uint64_t seed) {
  Draws draws(seed);
  Scenario scenario;
  const std::string protocol = name.substr(0, name.find('+'));
  if (protocol != name) {
    scenario.compress = "{name: " + name.substr(protocol.size() + 1) + ", density: 0.25}";
  }
  scenario.workers = static_cast<int>(draws.Between(1, 6));
  scenario.steps = draws.Between(2, 10);
  scenario.strategy = fmt::format("{{name: {}, servers: {}", protocol, draws.Between(1, 3));
  if (protocol == "ps_bsp") {
    scenario.synchronous = true;
  } else {
    scenario.share = draws.Coin();
    scenario.damping = draws.Coin();
    scenario.steps_in_all = draws.Coin() ? scenario.workers * scenario.steps : 0;
    scenario.strategy += fmt::format(", scale: {}, damping: {}", scenario.share ? "share" : "one",
                                     scenario.damping ? "inverse" : "none");
  }
  if (protocol == "ps_ssp" || protocol == "ps_dssp") {
    scenario.bound = draws.Between(0, 4);
    scenario.strategy += fmt::format(", staleness: {}", scenario.bound);
  }
  if (protocol == "ps_dssp") {
    scenario.bound_max = scenario.bound + draws.Between(0, 4);
    scenario.strategy += fmt::format(", staleness_max: {}", scenario.bound_max);
  } else if (protocol == "ps_asp") {
    scenario.bound = 1'000'000;
    scenario.prefetch = draws.Coin();
    scenario.strategy += fmt::format(", prefetch: {}", scenario.prefetch);
  }
  scenario.strategy += "}";
  return scenario;
}

std::string Named(const Scenario& scenario, uint64_t seed) {
  return fmt::format("seed {}: {} workers, {}", seed, scenario.workers, scenario.strategy);
}

class RandomHistories : public ::testing::TestWithParam<std::string> {};

TEST_P(RandomHistories, KeepTheRules) {
  for (const int64_t seed : SeedRange(Seeds())) {
    const Scenario scenario = ScenarioOf(GetParam(), seed);
    ASSERT_EQ(RandomWorld(scenario, seed).Run(), "") << Named(scenario, seed);
  }
}

TEST_P(RandomHistories, AreTheSameWithEqualSeeds) {
  const Scenario scenario = ScenarioOf(GetParam(), 5);
  RandomWorld one(scenario, 5), same(scenario, 5), other(scenario, 6);
  one.Run(), same.Run(), other.Run();
  EXPECT_EQ(one.history(), same.history());
  EXPECT_NE(one.history(), other.history());
}

TEST_P(RandomHistories, GoOnAsBeforeFromSavedState) {
  for (const int64_t seed : SeedRange(Seeds() / 4)) {
    const Scenario scenario = ScenarioOf(GetParam(), seed);
    RandomWorld whole(scenario, seed), reloaded(scenario, seed);
    reloaded.ReloadActors();
    ASSERT_EQ(whole.Run(), "") << Named(scenario, seed);
    ASSERT_EQ(reloaded.Run(), "") << Named(scenario, seed);
    ASSERT_EQ(reloaded.history(), whole.history()) << Named(scenario, seed);
  }
}

INSTANTIATE_TEST_SUITE_P(Ps, RandomHistories,
                         ::testing::Values("ps_bsp", "ps_ssp", "ps_dssp", "ps_asp", "ps_ssp+topk",
                                           "ps_dssp+topk", "ps_asp+topk"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '+', '_');
                           return name;
                         });

// --- planted bugs

// Drops the fourth update.
class LostUpdate : public RandomWorld {
 public:
  using RandomWorld::RandomWorld;

 protected:
  bool Loses(const Update&) override { return ++updates_ == 4; }

 private:
  int updates_ = 0;
};

// Drops the third answer to worker 0.
class LostAnswer : public RandomWorld {
 public:
  using RandomWorld::RandomWorld;

 protected:
  bool Loses(ActorId, ActorId to, const Message& message) override {
    return message.kind == ps::Weights::kKind && to == 0 && ++answers_ == 3;
  }

 private:
  int answers_ = 0;
};

// Drops what the third compression does not select.
class LostResidual : public RandomWorld {
 public:
  using RandomWorld::RandomWorld;

 protected:
  void Spoil(Parts& residual, Parts&) override {
    if (++compressions_ == 3) residual.clear();
  }

 private:
  int compressions_ = 0;
};

// Keeps in the residual what the third compression sends.
class KeptResidual : public RandomWorld {
 public:
  using RandomWorld::RandomWorld;

 protected:
  void Spoil(Parts& residual, Parts& out) override {
    if (++compressions_ != 3) return;
    for (const auto& [shard, content] : out) {
      std::vector<Gradient>& mass = residual[shard].mass;
      mass.insert(mass.end(), content.mass.begin(), content.mass.end());
    }
  }

 private:
  int compressions_ = 0;
};

// Returns the first seed with which a world of this kind breaks a rule, and the rule.
template <class World, class ScenarioFn>
std::pair<uint64_t, std::string> FirstFailure(const ScenarioFn& scenario_of) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::string verdict = World(scenario_of(seed), seed).Run();
    if (!verdict.empty()) return {seed, verdict};
  }
  return {0, ""};
}

template <class World, class ScenarioFn>
void ExpectFound(const ScenarioFn& scenario_of, const std::string& rule) {
  const auto [seed, verdict] = FirstFailure<World>(scenario_of);
  EXPECT_NE(verdict.find(rule), std::string::npos) << "found: " << verdict;
  EXPECT_EQ(World(scenario_of(seed), seed).Run(), verdict) << "seed " << seed << " does not repeat";
}

// The actors allow one more step than the oracle does.
Scenario BoundOffByOne(uint64_t seed) {
  Scenario scenario = ScenarioOf("ps_ssp", seed);
  scenario.bound = std::max<int64_t>(scenario.bound - 1, 0);
  return scenario;
}

TEST(PlantedBug, BoundOffByOneIsFound) {
  ExpectFound<RandomWorld>(BoundOffByOne, "ahead of the slowest");
}

// Returns the number of seeds that exceed `allowed`, with a bound from 1 to 4.
int64_t SeedsBeyond(int64_t allowed) {
  int64_t seeds_found = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Scenario scenario = ScenarioOf("ps_dssp", seed);
    scenario.strategy = "{name: ps_dssp, staleness: 1, staleness_max: 4}";
    scenario.share = true;
    scenario.damping = false;
    scenario.bound = 1;
    scenario.bound_max = allowed;
    if (RandomWorld(scenario, seed).Run() != "") ++seeds_found;
  }
  return seeds_found;
}

TEST(PlantedBug, ADynamicBoundOffByOneIsFound) {
  EXPECT_EQ(SeedsBeyond(4), 0);
  EXPECT_GT(SeedsBeyond(3), 0);
}

TEST(PlantedBug, LostUpdateIsFound) {
  for (const char* protocol : {"ps_bsp", "ps_ssp", "ps_asp"}) {
    ExpectFound<LostUpdate>([&](uint64_t seed) { return ScenarioOf(protocol, seed); },
                            "calls its weights ");
  }
}

TEST(PlantedBug, LostAndDoubledResidualsAreFound) {
  for (const char* protocol : {"ps_ssp+topk", "ps_asp+topk"}) {
    const auto scenario_of = [&](uint64_t seed) { return ScenarioOf(protocol, seed); };
    ExpectFound<LostResidual>(scenario_of, "is there 0 times");
    ExpectFound<KeptResidual>(scenario_of, "is there 2 times");
  }
}

TEST(PlantedBug, LostAnswerIsFound) {
  for (const char* protocol : {"ps_bsp", "ps_ssp", "ps_asp"}) {
    ExpectFound<LostAnswer>([&](uint64_t seed) { return ScenarioOf(protocol, seed); },
                            "keeps worker 0 waiting");
  }
}

}  // namespace
}  // namespace dtrain
