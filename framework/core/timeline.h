// Timeline records what one thread of a rank did at which time, for chrome://tracing and Perfetto.
//
// Real and simulated runs record alike: times are Nanos of any one clock of the rank.  Each thread ("compute",
// "exchange") has its own Timeline, one lane of the display, so that no lock is needed; a rank sends its lanes as bytes
// (PackTimelines), and rank 0 writes the file (timeline_file.h).
//
//   Timeline timeline("compute");
//   const int forward = timeline.Name("forward"), step = timeline.Name("step");  // once
//   timeline.Span(forward, begun, WallNow(), {step, 12});
//
// Recording appends to reserved memory: no allocation, no copy.  Events beyond `events_max` are dropped and counted, so
// that the file shows the beginning of a long run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "framework/core/time.h"

namespace dtrain {

// A number shown beside an event; `key` is from Timeline::Name, -1 for none.
struct TimelineArg {
  int key = -1;
  int64_t value = 0;
};

// Stored and sent as it is; it has no padding, so that equal timelines are equal bytes.
struct TimelineEvent {
  enum Kind : int32_t { kSpan, kInstant, kCounter };

  Nanos begin = 0;
  Nanos end = 0;  // of a span
  int64_t values[2] = {0, 0};
  int32_t keys[2] = {-1, -1};
  int32_t name = 0;
  int32_t kind = kSpan;
};
static_assert(std::has_unique_object_representations_v<TimelineEvent>);

class Timeline {
 public:
  static constexpr int64_t kEventsMax = 1 << 18;  // 14 MB, of which only the used part is touched

  explicit Timeline(std::string lane, int64_t events_max = kEventsMax);
  Timeline(Timeline&&) = default;  // a copy would lose the reserved memory

  // Returns the id of an event's or argument's name, the same for equal text.
  int Name(std::string_view name);

  // Spans of a lane must follow or contain one another: viewers draw a lane as one stack.
  void Span(int name, Nanos begin, Nanos end, TimelineArg first = {}, TimelineArg second = {});
  void Instant(int name, Nanos at, TimelineArg first = {}, TimelineArg second = {});
  void Counter(int name, Nanos at, int64_t value);  // holds until the next one of this name

  const std::string& lane() const { return lane_; }
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<TimelineEvent>& events() const { return events_; }
  int64_t dropped() const { return dropped_; }

 private:
  void Append(const TimelineEvent& event);

  std::string lane_;
  std::vector<std::string> names_;
  std::vector<TimelineEvent> events_;
  int64_t dropped_ = 0;
};

// Describes the rank that recorded the lanes.
struct TimelineRank {
  int rank = 0;
  std::string role;  // "worker 3"
  // Holds the rank's clock at the file's time 0, which all ranks read right after one barrier.
  Nanos origin = 0;
};

// Returns all lanes of a rank as bytes, for TimelineFile::Add on rank 0.
std::string PackTimelines(const TimelineRank& rank, std::span<const Timeline* const> lanes);

}  // namespace dtrain
