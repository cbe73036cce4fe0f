// Creates actors from a config section.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/strategies/strategy.h"
#include "tests/support/strategy_text.h"

namespace dtrain {

// `compress` is a config section, "" for none.
ActorSetup SetupFor(const Strategy& strategy, int workers, int64_t size,
                    const std::string& compress = "");

// Returns a report for the actors of this strategy.
inline ProtocolReport EmptyReport(const Strategy& strategy) {
  return {.counts = StrategyCounts(strategy.counters())};
}

// Returns the workers first, then the servers.
std::vector<std::unique_ptr<Actor>> MakeActors(const Strategy& strategy, const ActorSetup& setup);

// Returns "w0", "s1", "n0" for a node aggregator, or "c0" for the coordinator.
std::string ActorName(const Placement& placement, ActorId actor);

}  // namespace dtrain
