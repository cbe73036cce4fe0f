#include "framework/exchange/rank_parts.h"

#include <set>

#include "framework/core/check.h"
#include "framework/exchange/transport_channel.h"

namespace dtrain {
namespace {

std::unique_ptr<VectorOps> OpsOn(const BlobPools* pools) {
  if (pools == nullptr || pools->device().queue == nullptr) return MakeCpuVectorOps();
  return MakeDeviceVectorOps(pools->device());
}

// Vectors travel to and from servers and, where a strategy has them, the actors of nodes.  Ranks that
// have neither beside them count as nodes of their own here: they have nothing to lend.
std::vector<int> NodesWithMessages(const ExchangeSpec& spec) {
  const Placement& placement = spec.placement();
  std::vector<int> nodes = spec.rank_nodes;
  if (placement.nodes() > 0) return nodes;
  std::set<int> with_server;
  for (int server = 0; server < placement.servers; ++server) {
    with_server.insert(nodes[placement.RankOf(placement.ServerId(server))]);
  }
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    if (!with_server.contains(nodes[rank])) nodes[rank] = -1 - static_cast<int>(rank);
  }
  return nodes;
}

std::unique_ptr<NodeWindow> WindowOf(Transport& transport, const ExchangeSpec& spec) {
  if (!spec.window || spec.rank_nodes.empty() || spec.placement().servers == 0) return nullptr;
  return NodeWindow::Make(transport, NodesWithMessages(spec),
                          {.elements = spec.size() + Reducer::kTailSize});
}

}  // namespace

RankParts::RankParts(const ExchangeSpec& spec, Rank rank, RankSeams given)
    : seams(std::move(given)),
      timeline(spec.timeline ? std::make_unique<RankTimeline>(seams.timeline_events) : nullptr),
      sum_times(seams.clock, timeline.get()),
      ops(OpsOn(seams.pools)),
      driver(spec, rank,
             {.channel = seams.channel.get(),
              .collective = seams.collective.get(),
              .sparse = seams.sparse.get(),
              .clock = seams.clock,
              .event_times = seams.event_times,
              .ops = ops.get(),
              .pools = seams.pools,
              .worker_residual = seams.residual.get(),
              .timeline = timeline.get(),
              .sum_times = spec.watch_sums || spec.timeline ? &sum_times : nullptr,
              .record = spec.record ? &log : nullptr,
              .threads = seams.threads},
             seams.weights),
      quiescence(driver, spec, rank),
      model(driver, spec, seams.pools),
      protocol_before(driver.Report()),
      worker_before(driver.WorkerReport()) {
  seams.weights = {};  // the driver's from here on
}

Arena RankParts::gradients() {
  if (seams.residual != nullptr) return seams.residual->gradient();
  return {driver.gradients(), seams.pools->device().queue.get()};
}

// What quiescence has sent last may still be on its way out; nothing comes in.
StateRecord RankParts::Save() {
  while (seams.channel != nullptr && seams.channel->Sending()) {
    DT_CHECK(!seams.channel->Next()) << "a message at a boundary; " << driver.Describe();
  }
  return RecordState([this](StateVisitor& visitor) { driver.VisitToGoOn(visitor); });
}

RankSeams SeamsOver(Transport& transport, const ExchangeSpec& spec, const Clock& clock,
                    BlobPools& pools, const Device& device, int threads) {
  RankSeams seams{.clock = &clock, .pools = &pools, .threads = threads};
  seams.residual = DeviceResidual::For(spec, device);
  const Placement& placement = spec.placement();
  if (placement.ranks() > 1) {
    seams.window = WindowOf(transport, spec);
    pools.SendFrom(seams.window.get());
    seams.channel = std::make_unique<TransportChannel>(transport, pools, seams.window.get());
  }
  if (placement.ranks() > 1 && placement.servers == 0) {
    seams.collective = MakeCollective(spec.collective, transport, spec.collective_options());
    if (spec.actors.compress.on() && !spec.actors.compress.rounds()) {
      seams.sparse = MakeSparseCollective(spec.actors.compress.exchange, transport,
                                          {.node_of = spec.rank_nodes});
    }
  }
  seams.weights = {pools.CopyOf(spec.start.weights), 0, {0, spec.size()}};
  return seams;
}

}  // namespace dtrain
