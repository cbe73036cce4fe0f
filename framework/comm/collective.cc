#include "framework/comm/collective.h"

#include <algorithm>

#include "framework/comm/backoff.h"
#include "framework/comm/scheduled_collective.h"
#include "framework/core/check.h"

namespace dtrain {
namespace {

// Below this many bytes a second round costs more time than the bytes it saves (measured with
// `dtrain bench allreduce`, 2 to 8 ranks).  An exchange sends (P-1) n bytes, so with many ranks the
// limit is lower: a rank sends no more than it would to 7 others.
constexpr int64_t kExchangeBytes = 16 << 10;
constexpr int kExchangePeers = 7;
// With two ranks an exchange sends no more bytes than two rounds, but each rank adds the whole
// vector.  Up to this size that is faster.
constexpr int64_t kExchangeBytesOfTwo = 64 << 10;
// Between two ranks of one machine, up to this size starting a chunk costs more than the caches
// gain.
constexpr int64_t kWholeBytesOfTwo = 4 << 20;

CollectiveRules OrderedRules(int world) {
  if (world == 2) {
    return {.scheduler = OrderedSchedule,
            .whole_bytes = kWholeBytesOfTwo,
            .small_scheduler = ExchangeSchedule,
            .small_bytes = kExchangeBytesOfTwo};
  }
  const int64_t peers = std::max(world - 1, kExchangePeers);
  return {.scheduler = OrderedSchedule,
          .small_scheduler = ExchangeSchedule,
          .small_bytes = kExchangeBytes * kExchangePeers / peers};
}

CollectiveRules RingRules(int /*world*/) { return {.scheduler = RingSchedule}; }

DTRAIN_COLLECTIVE("ordered", OrderedRules,
                  "sums in rank order: the same bits for any buckets and schedule");
DTRAIN_COLLECTIVE("ring", RingRules, "Horovod's ring: repeats under the same schedule");

}  // namespace

int64_t Collective::StartRounded(std::span<float>, const Rounding&) {
  DT_CHECK(false) << name() << " has no sums of 16 bits";
  return 0;
}

CollectiveRulesOf ScheduleRulesOf(const std::string& collective) {
  const CollectiveEntry* const entry = CollectiveRegistry::Find(collective);
  return entry == nullptr ? nullptr : entry->rules;
}

bool SumsRounded(const std::string& collective) { return ScheduleRulesOf(collective) != nullptr; }

std::unique_ptr<Collective> MakeCollective(const std::string& name, Transport& transport,
                                           const CollectiveOptions& options) {
  const CollectiveEntry& entry = CollectiveRegistry::Get("collective", name);
  if (entry.rules == nullptr) return entry.make(transport, options);
  return std::make_unique<ScheduledCollective>(name, entry.rules(transport.size()), options,
                                               transport);
}

bool GoesByNodes(const std::string& collective) {
  const CollectiveRulesOf rules = ScheduleRulesOf(collective);
  return rules != nullptr && rules(1).by_nodes;
}

std::vector<std::string> CollectiveNames() { return CollectiveRegistry::Names(); }

void WaitFor(Collective& collective, int64_t ticket) { WaitForSum(collective, ticket); }

}  // namespace dtrain
