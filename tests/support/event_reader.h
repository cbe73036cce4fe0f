// Reads TensorBoard's files by the format (results/event_file.h), byte by byte.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtrain {

template <class T>
T TakeAs(std::string_view& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  bytes.remove_prefix(sizeof(value));
  return value;
}

inline uint64_t ReadVarint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = TakeAs<uint8_t>(bytes);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

// Returns the fields of a message: number -> the bytes of its values.
inline std::map<uint64_t, std::vector<std::string>> FieldsOf(std::string_view bytes) {
  std::map<uint64_t, std::vector<std::string>> fields;
  while (!bytes.empty()) {
    const uint64_t key = ReadVarint(bytes);
    const std::string_view before = bytes;
    size_t length = key % 8 == 1 ? 8 : 4;
    if (key % 8 == 0) {
      ReadVarint(bytes);
      length = before.size() - bytes.size();
      bytes = before;
    }
    if (key % 8 == 2) length = ReadVarint(bytes);
    fields[key / 8].emplace_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
  }
  return fields;
}

struct ReadEvent {
  int64_t step = 0;
  std::string version;
  std::vector<std::pair<std::string, float>> scalars;
  bool starts_session = false;
  size_t wall_times = 0;
};

inline ReadEvent EventOf(std::string_view payload) {
  ReadEvent event;
  auto fields = FieldsOf(payload);
  event.wall_times = fields[1].size();
  for (std::string_view bytes : fields[2]) event.step = static_cast<int64_t>(ReadVarint(bytes));
  for (const std::string& version : fields[3]) event.version = version;
  for (const std::string& summary : fields[5]) {
    const std::vector<std::string> values = FieldsOf(summary)[1];
    for (const std::string& value : values) {
      auto parts = FieldsOf(value);
      std::string_view bytes = parts[2].at(0);
      event.scalars.emplace_back(parts[1].at(0), TakeAs<float>(bytes));
    }
  }
  for (const std::string& log : fields[7]) event.starts_session = FieldsOf(log)[1].at(0) == "\1";
  return event;
}

// Calls `check` with the bytes of each length and payload and the masked CRC after them.
inline std::vector<ReadEvent> EventsOf(
    std::string_view bytes, const std::function<void(std::string_view, uint32_t)>& check = {}) {
  std::vector<ReadEvent> events;
  while (!bytes.empty()) {
    const std::string_view head = bytes.substr(0, 8);
    const auto length = TakeAs<uint64_t>(bytes);
    const auto head_crc = TakeAs<uint32_t>(bytes);
    const std::string_view payload = bytes.substr(0, length);
    bytes.remove_prefix(length);
    const auto payload_crc = TakeAs<uint32_t>(bytes);
    if (check) check(head, head_crc);
    if (check) check(payload, payload_crc);
    events.push_back(EventOf(payload));
  }
  return events;
}

}  // namespace dtrain
