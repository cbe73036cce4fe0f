#include "framework/exchange/event_log.h"

#include <limits>
#include <string_view>

#include "framework/core/error.h"

namespace dtrain {
namespace {

void PutVarint(std::string& bytes, uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
}

class VarintReader {
 public:
  VarintReader(std::string_view bytes, const std::string& source) : rest_(bytes), source_(source) {}

  bool AtEnd() const { return rest_.empty(); }
  uint64_t Next() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) throw RunFileError(source_ + ": the event log is cut short");
      const uint8_t byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    ThrowCorrupt();
  }
  ActorId Actor() {
    const uint64_t actor = Next();
    if (actor > static_cast<uint64_t>(std::numeric_limits<ActorId>::max())) ThrowCorrupt();
    return static_cast<ActorId>(actor);
  }
  [[noreturn]] void ThrowCorrupt() const {
    throw RunFileError(source_ + ": the event log is corrupt");
  }

 private:
  std::string_view rest_;
  const std::string& source_;
};

}  // namespace

void EventLog::Add(const Event& event) {
  PutVarint(bytes_, static_cast<uint64_t>(event.kind));
  PutVarint(bytes_, static_cast<uint64_t>(event.actor));
  if (event.kind == EventKind::kBegin) return;
  // The lowest bit is the sign, so small negative numbers stay short.
  const uint64_t magnitude = static_cast<uint64_t>(event.value < 0 ? -event.value : event.value);
  PutVarint(bytes_, magnitude << 1 | (event.value < 0 ? 1 : 0));
  if (event.kind == EventKind::kQuiet) PutVarint(bytes_, event.last ? 1 : 0);
}

std::vector<Event> EventLog::Read(const std::string& bytes, const std::string& source) {
  std::vector<Event> events;
  for (VarintReader reader(bytes, source); !reader.AtEnd();) {
    const uint64_t kind = reader.Next();
    if (kind < static_cast<uint64_t>(EventKind::kBegin) ||
        kind > static_cast<uint64_t>(EventKind::kTime)) {
      reader.ThrowCorrupt();
    }
    Event event{static_cast<EventKind>(kind), reader.Actor(), 0};
    if (event.kind != EventKind::kBegin) {
      const uint64_t coded = reader.Next();
      event.value = static_cast<int64_t>(coded >> 1);
      if ((coded & 1) != 0) event.value = -event.value;
      if (event.kind == EventKind::kMessage && event.value < 0) reader.ThrowCorrupt();
    }
    if (event.kind == EventKind::kQuiet) event.last = reader.Next() != 0;
    events.push_back(event);
  }
  return events;
}

}  // namespace dtrain
