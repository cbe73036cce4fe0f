// EventLog: the order in which the actors of one rank saw their events.  With it, the plan and the
// config, a run of an asynchronous protocol can be repeated to the bit (framework/sim/replay.h):
// what happened is a pure function of these orders.
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
  // kMessage: its sender.  kTimer: its number.  kEnd: the step's compute time, ns.  kQuiet: the
  // samples applied.  kTime: when the event before it happened, ns, where the actor asked.
  int64_t value = 0;
  bool last = false;  // kQuiet: at the end of the run
  friend bool operator==(const Event&, const Event&) = default;
};

// Events as bytes, a few each: kind, actor and, but for kBegin, value, as variable-length numbers;
// for kQuiet also `last`.
class EventLog {
 public:
  void Add(const Event& event);
  const std::string& bytes() const { return bytes_; }

  // The version of this form.  In version 1 the value of kQuiet was twice the samples, and one more
  // at the end of the run; kTime came with version 3.
  static constexpr int kVersion = 3;

  // The events of `bytes`, of any version so far.  Throws RunFileError, naming `source`, when
  // they are cut short or none.
  static std::vector<Event> Read(const std::string& bytes, int version, const std::string& source);

 private:
  std::string bytes_;
};

}  // namespace dtrain
