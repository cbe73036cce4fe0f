#include "framework/comm/collective.h"

#include "framework/comm/backoff.h"
#include "framework/comm/plan_collective.h"

namespace dtrain {
namespace {

// Measured (`dtrain bench allreduce`): pieces of 128-512 KB stay in the second-level cache while
// they are added, and below this many bytes a second round costs more than the bytes it saves.
constexpr int64_t kChunkBytes = 512 << 10;
constexpr int64_t kExchangeBytes = 16 << 10;

std::unique_ptr<Collective> MakeOrdered(Transport& transport, const CollectiveOptions& options) {
  return std::make_unique<PlanCollective>(
      "ordered",
      PlanRules{.planner = OrderedPlan,
                .chunk_bytes = options.chunk_bytes > 0 ? options.chunk_bytes : kChunkBytes,
                .small_planner = ExchangePlan,
                .small_bytes = kExchangeBytes,
                .node_of = options.node_of},
      transport);
}

std::unique_ptr<Collective> MakeRing(Transport& transport, const CollectiveOptions& options) {
  return std::make_unique<PlanCollective>(
      "ring",
      PlanRules{.planner = RingPlan,
                .chunk_bytes = options.chunk_bytes > 0 ? options.chunk_bytes : kChunkBytes,
                .node_of = options.node_of},
      transport);
}

DTRAIN_COLLECTIVE("ordered", MakeOrdered, OrderedPlan,
                  "sums in rank order: the same bits for any buckets and schedule");
DTRAIN_COLLECTIVE("ring", MakeRing, RingPlan, "Horovod's ring: repeats under the same plan");

}  // namespace

std::unique_ptr<Collective> MakeCollective(const std::string& name, Transport& transport,
                                           const CollectiveOptions& options) {
  return CollectiveRegistry::Get("collective", name).make(transport, options);
}

std::vector<std::string> CollectiveNames() { return CollectiveRegistry::Names(); }

void WaitFor(Collective& collective, int64_t ticket) {
  Backoff backoff;
  while (!collective.Done(ticket)) {
    if (collective.Progress()) {
      backoff.Reset();
    } else {
      backoff.Pause();
    }
  }
}

}  // namespace dtrain
