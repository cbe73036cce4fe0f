#include "framework/strategies/event_log.h"

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

  uint64_t Next() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) throw CheckpointError(source_ + ": the event log is cut short", "");
      const uint8_t byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw CheckpointError(source_ + ": the event log is corrupt", "");
  }
  bool AtEnd() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  const std::string& source_;
};

}  // namespace

// The number of events, then of each its kind, its actor and, of a message, its sender.
std::string EventLog::ToBytes() const {
  std::string bytes;
  PutVarint(bytes, events_.size());
  for (const Event& event : events_) {
    PutVarint(bytes, static_cast<uint64_t>(event.kind));
    PutVarint(bytes, static_cast<uint64_t>(event.actor));
    if (event.kind == EventKind::kMessage) PutVarint(bytes, static_cast<uint64_t>(event.from));
  }
  return bytes;
}

EventLog EventLog::FromBytes(std::string_view bytes, const std::string& source) {
  VarintReader reader(bytes, source);
  EventLog log;
  for (uint64_t left = reader.Next(); left > 0; --left) {
    Event event;
    const uint64_t kind = reader.Next();
    if (kind < 1 || kind > static_cast<uint64_t>(EventKind::kTimer)) {
      throw CheckpointError(source + ": the event log is corrupt", "");
    }
    event.kind = static_cast<EventKind>(kind);
    event.actor = static_cast<ActorId>(reader.Next());
    if (event.kind == EventKind::kMessage) event.from = static_cast<ActorId>(reader.Next());
    log.Add(event);
  }
  if (!reader.AtEnd()) throw CheckpointError(source + ": the event log is corrupt", "");
  return log;
}

}  // namespace dtrain
