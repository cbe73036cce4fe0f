#include "framework/strategies/ps/ps_strategy.h"

#include <fmt/format.h>

#include <string>

#include "framework/core/error.h"

namespace dtrain::ps {

void PsStrategy::Configure(config::Reader& reader) {
  servers_ =
      static_cast<int>(reader.Int("servers", 1)
                           .Min(1)
                           .Max(65536)
                           .Help("number of parameter servers; each holds a shard of the weights"));
  const std::string placement =
      reader.String("placement", "dedicated")
          .OneOf({"dedicated", "colocated"})
          .Help("dedicated: servers have ranks of their own; colocated: they share workers' ranks");
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
  const std::string scale = reader.String("scale", "share")
                                .OneOf({"share", "one"})
                                .Help(
                                    "learning rate for one worker's gradient: lr / workers (share) "
                                    "or lr (one, as in Downpour SGD)");
  const std::string damping =
      reader.String("damping", "none")
          .OneOf({"none", "inverse"})
          .Help("inverse: divide lr by the staleness of a gradient when that is 2 or more");
  return {.share = scale == "share", .damping = damping == "inverse"};
}

}  // namespace dtrain::ps
