#include "framework/core/timeline.h"

#include <algorithm>
#include <utility>

#include "framework/core/bytes.h"

namespace dtrain {

Timeline::Timeline(std::string lane, int64_t events_max) : lane_(std::move(lane)) {
  events_.reserve(static_cast<size_t>(events_max));
}

int Timeline::Name(std::string_view name) {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<int>(found - names_.begin());
  names_.emplace_back(name);
  return static_cast<int>(names_.size()) - 1;
}

void Timeline::Span(int name, Nanos begin, Nanos end, TimelineArg first, TimelineArg second) {
  Append({begin,
          end,
          {first.value, second.value},
          {first.key, second.key},
          name,
          TimelineEvent::kSpan});
}

void Timeline::Instant(int name, Nanos at, TimelineArg first, TimelineArg second) {
  Append({at,
          at,
          {first.value, second.value},
          {first.key, second.key},
          name,
          TimelineEvent::kInstant});
}

void Timeline::Counter(int name, Nanos at, int64_t value) {
  Append({at, at, {value, 0}, {-1, -1}, name, TimelineEvent::kCounter});
}

void Timeline::Append(const TimelineEvent& event) {
  if (events_.size() < events_.capacity()) {
    events_.push_back(event);
  } else {
    ++dropped_;
  }
}

std::string PackTimelines(const TimelineRank& rank, std::span<const Timeline* const> lanes) {
  ByteWriter writer;
  writer.Value<int32_t>(rank.rank);
  writer.Text(rank.role);
  writer.Value(rank.origin);
  writer.Value<uint64_t>(lanes.size());
  for (const Timeline* lane : lanes) {
    writer.Text(lane->lane());
    writer.Value<uint64_t>(lane->names().size());
    for (const std::string& name : lane->names()) writer.Text(name);
    writer.Values(lane->events());
    writer.Value(lane->dropped());
  }
  return writer.Take();
}

}  // namespace dtrain
