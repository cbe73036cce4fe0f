#include "framework/strategies/event_log.h"

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
  int Next() {
    int value = 0;
    for (int shift = 0; shift < 28; shift += 7) {
      if (rest_.empty()) throw CheckpointError(source_ + ": the event log is cut short");
      const uint8_t byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw CheckpointError(source_ + ": the event log is corrupt");
  }

 private:
  std::string_view rest_;
  const std::string& source_;
};

}  // namespace

void EventLog::Add(const Event& event) {
  PutVarint(bytes_, static_cast<uint64_t>(event.kind));
  PutVarint(bytes_, static_cast<uint64_t>(event.actor));
  if (event.kind == EventKind::kMessage) PutVarint(bytes_, static_cast<uint64_t>(event.from));
}

std::vector<Event> EventLog::Read(const std::string& bytes, const std::string& source) {
  std::vector<Event> events;
  for (VarintReader reader(bytes, source); !reader.AtEnd();) {
    const int kind = reader.Next();
    if (kind < static_cast<int>(EventKind::kBegin) || kind > static_cast<int>(EventKind::kTimer)) {
      throw CheckpointError(source + ": the event log is corrupt");
    }
    Event event{static_cast<EventKind>(kind), reader.Next(), 0};
    if (event.kind == EventKind::kMessage) event.from = reader.Next();
    events.push_back(event);
  }
  return events;
}

}  // namespace dtrain
