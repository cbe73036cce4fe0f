#include "framework/sim/collective_cost.h"

#include <algorithm>
#include <memory>

#include "framework/core/error.h"
#include "framework/core/text.h"

namespace dtrain {
namespace {

constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

CollectiveRules RulesOf(const std::string& collective, int ranks) {
  if (const CollectiveRulesOf rules = ScheduleRulesOf(collective)) return rules(ranks);
  std::vector<std::string> others;
  for (const auto& [name, other] : CollectiveRegistry::All()) {
    if (other.rules != nullptr) others.push_back(name);
  }
  throw ConfigError("collective '" + collective + "' cannot be simulated",
                    "its schedule is not known; take one of " + Join(others));
}

}  // namespace

CollectiveCost::CollectiveCost(const std::string& name, int ranks, const NetworkModel& network,
                               double add_ns_per_byte, const CollectiveOptions& options)
    : rules_(RulesOf(name, ranks)),
      large_(rules_.scheduler, ranks, network, add_ns_per_byte, options.node_of,
             options.plan_nodes) {
  if (options.chunk_bytes > 0) rules_.chunk_bytes = options.chunk_bytes;
  if (rules_.small_scheduler == nullptr) return;
  small_.emplace(rules_.small_scheduler, ranks, network, add_ns_per_byte, options.node_of,
                 options.plan_nodes);
}

bool CollectiveCost::IsSmall(int64_t n) const {
  return small_.has_value() && n * kFloatBytes <= rules_.small_bytes;
}

int64_t CollectiveCost::ChunksOf(int64_t n) const {
  if (!rules_.pipelined || IsSmall(n)) return 1;
  return std::max<int64_t>(1, (n * kFloatBytes + rules_.chunk_bytes - 1) / rules_.chunk_bytes);
}

Nanos CollectiveCost::Of(int64_t n) const {
  const int64_t chunks = ChunksOf(n);
  const int64_t chunk = (n + chunks - 1) / chunks;
  return ScheduleFor(n).Of(chunk) + (chunks - 1) * IntervalOfChunk(ScheduleFor(n), chunk);
}

Nanos CollectiveCost::Interval(int64_t n) const {
  const int64_t chunks = ChunksOf(n);
  const int64_t chunk = (n + chunks - 1) / chunks;
  return chunks * IntervalOfChunk(ScheduleFor(n), chunk);
}

// The interval is at most the time of the chunk alone, which may be short because of a full token
// bucket.
Nanos CollectiveCost::IntervalOfChunk(const ScheduleCost& schedule, int64_t chunk) const {
  const Nanos alone = schedule.Of(chunk);
  return std::min(alone, std::max(schedule.BusyFor(chunk), alone / rules_.lanes));
}

Collective::Traffic CollectiveCost::TrafficOf(Rank rank, int64_t n) const {
  const ScheduleCost& schedule = ScheduleFor(n);
  const BlocksMoved& moved = schedule.MovedBy(rank);
  const int64_t bytes = n * kFloatBytes;
  const auto part = [&](int64_t blocks) { return blocks * bytes / schedule.blocks(); };
  return {.bytes_sent = part(moved.sent),
          .bytes_received = part(moved.received),
          .messages = moved.messages * ChunksOf(n),
          .bytes_inside = part(moved.inside)};
}

}  // namespace dtrain
