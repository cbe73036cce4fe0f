#include "framework/exchange/rank_parts.h"

namespace dtrain {

RankParts::RankParts(const RankSetup& setup, Transport& transport) {
  const Placement& placement = setup.actors.placement;
  Driver::Seams seams{.clock = &clock, .pools = &pools};
  if (placement.ranks() > 1) mail = std::make_unique<TransportMail>(transport, pools);
  if (placement.ranks() > 1 && placement.servers == 0) {
    collective = MakeCollective(setup.collective, transport, {.chunk_bytes = setup.chunk_bytes});
  }
  seams.mail = mail.get();
  seams.collective = collective.get();
  if (setup.record) seams.record = &log;
  if (setup.timeline) timeline = std::make_unique<RankTimeline>();
  seams.timeline = timeline.get();
  driver = std::make_unique<Driver>(*setup.layout, setup.driver, seams);
  for (const ActorId id : placement.ActorsOf(transport.rank())) {
    driver->AddActor(id, setup.strategy->MakeActor(id, setup.actors));
  }
  driver->Restore({pools.CopyOf(setup.weights), 0, {0, setup.layout->size()}}, *setup.solver);
  rest = std::make_unique<Rest>(*driver,
                                Rest::Options{.rule = setup.rule,
                                              .synchronous = setup.strategy->synchronous(),
                                              .placement = placement,
                                              .rank = transport.rank(),
                                              .samples_applied = setup.driver.samples_applied});
  model = std::make_unique<ModelAtRest>(*driver, placement, setup.layout->size(), pools);
}

}  // namespace dtrain
