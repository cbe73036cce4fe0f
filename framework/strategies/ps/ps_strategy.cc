#include "framework/strategies/ps/ps_strategy.h"

#include <fmt/format.h>

#include <string>

#include "framework/core/error.h"

namespace dtrain::ps {

void PsStrategy::Configure(config::Reader& reader) {
  servers_ = static_cast<int>(reader.Int("servers", 1)
                                  .Min(1)
                                  .Max(65536)
                                  .Help("parameter servers, each with a part of the weights"));
  const std::string placement = reader.String("placement", "dedicated")
                                    .OneOf({"dedicated", "colocated"})
                                    .Help("servers on ranks of their own, or on workers' ranks");
  colocated_ = placement == "colocated";
}

std::vector<Range> PsStrategy::Buckets(const GradientPieces& pieces) const {
  if (pieces.total() < servers_) {
    throw ConfigError(fmt::format("strategy.servers is {}, but the model has only {} parameters",
                                  servers_, pieces.total()),
                      "each server needs a part of them");
  }
  return {{0, pieces.total()}};
}

std::unique_ptr<Actor> PsStrategy::MakeActor(ActorId id, const ActorSetup& setup) const {
  const Placement& placement = setup.placement;
  return placement.IsWorker(id) ? MakeWorker(id, setup) : MakeServer(placement.ServerOf(id), setup);
}

SspOptions ReadSspOptions(config::Reader& reader) {
  const std::string scale =
      reader.String("scale", "share")
          .OneOf({"share", "one"})
          .Help("learning rate of one worker's gradient: lr / workers, or lr (Downpour's)");
  const std::string damping =
      reader.String("damping", "none")
          .OneOf({"none", "inverse"})
          .Help("inverse: a gradient of staleness 2 or more takes lr / staleness");
  return {.share = scale == "share", .damping = damping == "inverse"};
}

}  // namespace dtrain::ps
