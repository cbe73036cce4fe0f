#include "framework/runtime/run/best_weights.h"

#include <string>
#include <utility>

#include "framework/comm/gather.h"
#include "framework/core/log.h"
#include "framework/runtime/launch/world.h"
#include "framework/runtime/weights/weights_file.h"

namespace dtrain {
namespace {

BestWeights Read(const std::filesystem::path& file, const ModelLayout& layout) {
  if (!std::filesystem::exists(file)) {
    log::Warning("there is no {}: the test is of the last weights", file.string());
    return {};
  }
  Checkpoint best = LoadWeights(file, layout);
  return {best.info.position.step, std::move(best.weights), std::move(best.state)};
}

}  // namespace

BestWeights WeightsToTest(const RunConfig& config, Split split, Exchange& exchange,
                          const std::filesystem::path& file, const ModelLayout& layout) {
  BestWeights best;
  if (split != Split::kTest || !config.checkpoint.keep_best) return best;
  exchange.AtRest([&](Transport& transport) {
    TryTogether(transport, [&] {
      if (transport.rank() == 0) best = Read(file, layout);
    });
    if (transport.size() == 1) return;
    const std::string bytes = Broadcast(transport, transport.rank() == 0 ? ToBytes(best) : "");
    if (transport.rank() != 0) best = FromBytes<BestWeights>(bytes);
  });
  return best;
}

}  // namespace dtrain
