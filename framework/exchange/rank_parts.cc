#include "framework/exchange/rank_parts.h"

#include <fmt/format.h>

#include "framework/comm/device_collective.h"
#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/exchange/transport_channel.h"

namespace dtrain {
namespace {

std::unique_ptr<VectorOps> OpsOn(const BlobPools* pools, StepGraph* steps) {
  if (pools == nullptr || pools->device().queue == nullptr) return MakeCpuVectorOps();
  return MakeDeviceVectorOps(pools->device(), steps);
}

std::unique_ptr<NodeWindow> WindowOf(Transport& transport, const ExchangeSpec& spec) {
  if (!spec.window || spec.rank_nodes.empty() || spec.traits().collectives) return nullptr;
  return NodeWindow::Make(transport, spec.placement().NodesWithMessages(spec.rank_nodes),
                          {.elements = spec.size() + Reducer::kTailSize});
}

}  // namespace

RankParts::RankParts(const ExchangeSpec& spec, Rank rank, RankDependencies given)
    : dependencies(std::move(given)),
      timeline(spec.timeline ? std::make_unique<RankTimeline>(dependencies.timeline_events)
                             : nullptr),
      all_reduce_times(dependencies.clock, timeline.get()),
      ops(OpsOn(dependencies.pools, dependencies.steps)),
      driver(spec, rank,
             {.channel = dependencies.channel.get(),
              .collective = dependencies.collective.get(),
              .sparse = dependencies.sparse.get(),
              .reports = dependencies.reports.get(),
              .clock = dependencies.clock,
              .event_times = dependencies.event_times,
              .ops = ops.get(),
              .pools = dependencies.pools,
              .worker_residual = dependencies.residual.get(),
              .timeline = timeline.get(),
              .all_reduce_times = spec.timeline ? &all_reduce_times : nullptr,
              .record = spec.record ? &log : nullptr,
              .threads = dependencies.threads},
             dependencies.weights),
      quiescence(driver, spec, rank),
      model(driver, spec, dependencies.pools),
      protocol_before(driver.Report()),
      worker_before(driver.WorkerReport()) {
  dependencies.weights = {};  // drops the reference; the driver's vectors have them now
}

Arena RankParts::gradients() {
  if (dependencies.residual != nullptr) return dependencies.residual->gradient();
  return {driver.gradients(), dependencies.pools->device().queue.get()};
}

// The last messages of Quiescence may still have to be sent.  None can arrive.
StateRecord RankParts::Save() {
  while (dependencies.channel != nullptr && dependencies.channel->Sending()) {
    DT_CHECK(!dependencies.channel->Next()) << "a message at a boundary; " << driver.Describe();
  }
  return RecordState([this](StateVisitor& visitor) { driver.VisitToGoOn(visitor); });
}

bool StaysOnDevice(const ExchangeSpec& spec, const Device& device, Transport& transport,
                   std::string* why_not) {
  if (!spec.traits().collectives) return false;
  const DeviceCollective* const entry = DeviceCollectiveRegistry::Find(spec.collective);
  if (entry == nullptr) return false;
  // Only one rank may collect statistics of its gradient.
  const std::string of_config = FirstReason(
      transport, device.queue == nullptr           ? "a rank computes on the CPU"
                 : !spec.traits().sums_gradients() ? "its strategy does not add whole gradients"
                 : spec.actors.compress.on() && !DeviceResidual::Serves(spec, device)
                     ? "its gradients are compressed"
                 : spec.statistics != nullptr ? "it writes statistics of gradients"
                                              : "");
  const std::string of_device = of_config.empty() ? entry->why_not(transport, device) : "";
  if (why_not != nullptr) *why_not = of_device;
  const std::string& reason = of_config.empty() ? of_device : of_config;
  if (!reason.empty() && CollectiveRegistry::Find(spec.collective) == nullptr) {
    throw ConfigError(fmt::format("collective '{}' adds gradients in the memory of GPUs, and this "
                                  "run cannot: {}",
                                  spec.collective, reason),
                      "collective: ordered");
  }
  return reason.empty();
}

RankDependencies DependenciesOver(Transport& transport, const ExchangeSpec& spec,
                                  const Clock& clock, BlobPools& pools, const Device& device,
                                  int threads) {
  RankDependencies dependencies{.clock = &clock, .pools = &pools, .threads = threads};
  dependencies.residual = DeviceResidual::For(spec, device, pools.device());
  const Placement& placement = spec.placement();
  if (placement.ranks() > 1) {
    dependencies.window = WindowOf(transport, spec);
    pools.SendFrom(dependencies.window.get());
    dependencies.channel =
        std::make_unique<TransportChannel>(transport, pools, dependencies.window.get());
  }
  const bool sums = placement.ranks() > 1 && spec.traits().collectives;
  if (sums && pools.device().queue != nullptr) {
    const auto& entry = DeviceCollectiveRegistry::Get("collective", spec.collective);
    dependencies.collective = entry.make(transport, pools.device());
    dependencies.reports = MakeCollective("ordered", transport);
  } else if (sums) {
    dependencies.collective = MakeCollective(spec.collective, transport, spec.collective_options());
  }
  if (sums && spec.actors.compress.on() && !spec.actors.compress.rounds()) {
    dependencies.sparse = MakeSparseCollective(spec.actors.compress.exchange, transport,
                                               {.node_of = spec.rank_nodes});
  }
  dependencies.weights = {pools.CopyOf(spec.start.weights), 0, {0, spec.size()}};
  return dependencies;
}

}  // namespace dtrain
