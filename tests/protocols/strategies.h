// Strategies and actors as a config would make them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/strategies/strategy.h"

namespace dtrain {

// `section` is the config's `strategy`, as in "{name: ps_ssp, staleness: 1}".  Throws ConfigError
// with all its mistakes.
std::unique_ptr<Strategy> MakeStrategy(const std::string& section);

ActorSetup SetupFor(const Strategy& strategy, int workers, int64_t size);

// Workers first, then servers.
std::vector<std::unique_ptr<Actor>> MakeActors(const Strategy& strategy, const ActorSetup& setup);

// "w0", "s1"
std::string ActorName(const Placement& placement, ActorId actor);

}  // namespace dtrain
