// EventLog: the order in which the actors of one rank saw their events.  With it, the plan and the
// config, a run of an asynchronous protocol can be repeated to the bit (framework/sim/replay.h):
// what happened is a pure function of these orders.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/strategies/message.h"

namespace dtrain {

enum class EventKind : uint8_t { kBegin = 1, kReady, kEnd, kReduced, kMessage, kTimer };

struct Event {
  EventKind kind = EventKind::kBegin;
  ActorId actor = 0;
  ActorId from = 0;  // of a message
  friend bool operator==(const Event&, const Event&) = default;
};

class EventLog {
 public:
  void Add(const Event& event) { events_.push_back(event); }
  const std::vector<Event>& events() const { return events_; }

  std::string ToBytes() const;  // a few bytes an event
  // Throws CheckpointError naming `source` when the bytes are cut short or no log.
  static EventLog FromBytes(std::string_view bytes, const std::string& source);

 private:
  std::vector<Event> events_;
};

}  // namespace dtrain
