#include "tests/strategies/strategies.h"

#include <fmt/format.h>

namespace dtrain {

ActorSetup SetupFor(const Strategy& strategy, int workers, int64_t size,
                    const std::string& compress) {
  return {.placement = strategy.Place(workers),
          .size = size,
          .buckets = strategy.Buckets({{{0, size}}}),
          .compress = MakeCompress(compress)};
}

std::vector<std::unique_ptr<Actor>> MakeActors(const Strategy& strategy, const ActorSetup& setup) {
  std::vector<std::unique_ptr<Actor>> actors;
  for (ActorId id = 0; id < setup.placement.actors(); ++id) {
    actors.push_back(strategy.MakeActor(id, setup));
  }
  return actors;
}

std::string ActorName(const Placement& placement, ActorId actor) {
  static constexpr const char kLetters[] = {'w', 's', 'n', 'c'};
  const ActorKind kind = placement.KindOf(actor);
  return fmt::format("{}{}", kLetters[static_cast<int>(kind)], placement.NumberOf(actor));
}

}  // namespace dtrain
