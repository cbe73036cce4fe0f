#include "framework/exchange/rank_parts.h"

#include "framework/core/check.h"
#include "framework/exchange/transport_mail.h"

namespace dtrain {

RankParts::RankParts(const ExchangeSpec& spec, Rank rank, RankSeams given)
    : seams(std::move(given)),
      timeline(spec.timeline ? std::make_unique<RankTimeline>(seams.timeline_events) : nullptr),
      ops(MakeCpuVectorOps()),
      driver(spec, rank,
             {.mail = seams.mail.get(),
              .collective = seams.collective.get(),
              .clock = seams.clock,
              .event_times = seams.event_times,
              .ops = ops.get(),
              .pools = seams.pools,
              .timeline = timeline.get(),
              .record = spec.record ? &log : nullptr,
              .threads = seams.threads},
             seams.weights),
      rest(driver, spec, rank),
      model(driver, spec, seams.pools),
      protocol_before(driver.Report()),
      worker_before(driver.WorkerReport()) {
  seams.weights = {};  // the driver's from here on
}

// What rest has said last may still be on its way out; nothing comes in.
StateRecord RankParts::Save() {
  while (seams.mail != nullptr && seams.mail->Sending()) {
    DT_CHECK(!seams.mail->Next()) << "a letter at rest; " << driver.Describe();
  }
  return RecordState([this](StateVisitor& visitor) { driver.VisitToGoOn(visitor); });
}

RankSeams SeamsOver(Transport& transport, const ExchangeSpec& spec, const Clock& clock,
                    BlobPools& pools, int threads) {
  RankSeams seams{.clock = &clock, .pools = &pools, .threads = threads};
  const Placement& placement = spec.placement();
  if (placement.ranks() > 1) seams.mail = std::make_unique<TransportMail>(transport, pools);
  if (placement.ranks() > 1 && placement.servers == 0) {
    seams.collective = MakeCollective(
        spec.collective, transport, {.chunk_bytes = spec.chunk_bytes, .node_of = spec.rank_nodes});
  }
  seams.weights = {pools.CopyOf(spec.start.weights), 0, {0, spec.size()}};
  return seams;
}

}  // namespace dtrain
