// EventLog: the order in which the actors of one rank got their events.  With the logs of all
// ranks, the plan and the config, a run of an asynchronous protocol can be repeated to the bit
// (framework/sim/replay.h), since its result is a pure function of these orders.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/strategies/message.h"

namespace dtrain {

enum class EventKind : uint8_t { kBegin = 1, kEnd, kMessage, kTimer, kQuiet, kTime };

struct Event {
  EventKind kind = EventKind::kBegin;
  ActorId actor = 0;
  // Its meaning depends on the kind.  kMessage: the sender.  kTimer: the timer's number.  kEnd: the
  // step's compute time, ns.  kQuiet: the samples applied.  kTime: the time of the event before,
  // ns, if the actor asked for it.
  int64_t value = 0;
  bool last = false;  // kQuiet: true at the end of the run
  friend bool operator==(const Event&, const Event&) = default;
};

// Events are stored as a few bytes each: kind, actor and, except for kBegin, value, as
// variable-length numbers; for kQuiet also `last`.
class EventLog {
 public:
  void Add(const Event& event);
  const std::string& bytes() const { return bytes_; }

  static constexpr int kVersion = 3;  // of this format

  // Returns the events of `bytes`.  Throws RunFileError, naming `source`, if the log is cut short or
  // corrupt.
  static std::vector<Event> Read(const std::string& bytes, const std::string& source);

 private:
  std::string bytes_;
};

}  // namespace dtrain
