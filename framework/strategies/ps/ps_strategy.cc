#include "framework/strategies/ps/ps_strategy.h"

#include <string>

namespace dtrain::ps {

void PsStrategy::Configure(config::Reader& reader) {
  servers_ =
      ServerKeys::Read(reader, 1, "number of parameter servers; each holds a shard of the weights");
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
