// Tests that run on the random histories of any protocol in World.
//
//   struct Case { world::Scenario scenario; ... };   // what a seed draws
//   class XRules : public world::Rules { XRules(const Case&, const Placement&); ... };
//   Case CaseOf(uint64_t seed);
//   using XHistories = Histories<Case, XRules, CaseOf>;
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "tests/strategies/world.h"
#include "tests/support/seeds.h"

namespace dtrain::world {

template <class Case, class CaseRules, Case (*CaseOf)(uint64_t)>
struct Histories {
  static World WorldOf(const Case& run, uint64_t seed) {
    return World(
        run.scenario,
        [&run](const Placement& placement) { return std::make_unique<CaseRules>(run, placement); },
        seed);
  }

  static std::string Named(const Case& run, uint64_t seed) {
    return fmt::format("seed {}: {} workers, {} steps, {}", seed, run.scenario.workers,
                       run.scenario.steps, run.scenario.strategy);
  }

  static void KeepTheRules() {
    for (const int64_t seed : SeedRange(Seeds())) {
      const Case run = CaseOf(seed);
      World world = WorldOf(run, seed);
      ASSERT_EQ(world.Run(), "") << Named(run, seed) << world.LastOfHistory();
    }
  }

  static void GoOnAsBeforeFromSavedState() {
    for (const int64_t seed : SeedRange(Seeds() / 4)) {
      const Case run = CaseOf(seed);
      World whole = WorldOf(run, seed), reloaded = WorldOf(run, seed);
      reloaded.ReloadActors();
      ASSERT_EQ(whole.Run(), "") << Named(run, seed);
      ASSERT_EQ(reloaded.Run(), "") << Named(run, seed);
      ASSERT_EQ(reloaded.history(), whole.history()) << Named(run, seed);
    }
  }

  // Returns the first rule, over the seeds, that a planted error breaks.
  static std::string FirstFailure(const std::function<void(World&)>& plant) {
    for (uint64_t seed = 0; seed < 200; ++seed) {
      const Case run = CaseOf(seed);
      World world = WorldOf(run, seed);
      plant(world);
      const std::string verdict = world.Run();
      if (!verdict.empty()) return verdict;
    }
    return "";
  }
};

}  // namespace dtrain::world
