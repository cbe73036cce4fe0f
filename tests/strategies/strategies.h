// Actors as a config would make them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/strategies/strategy.h"
#include "tests/support/strategy_text.h"

namespace dtrain {

// `compress`: config section, "" for none.
ActorSetup SetupFor(const Strategy& strategy, int workers, int64_t size,
                    const std::string& compress = "");

// Workers first, then servers.
std::vector<std::unique_ptr<Actor>> MakeActors(const Strategy& strategy, const ActorSetup& setup);

// "w0", "s1", "n0" for a node, "c0" for the coordinator
std::string ActorName(const Placement& placement, ActorId actor);

}  // namespace dtrain
