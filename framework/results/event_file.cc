#include "framework/results/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace dtrain {
namespace {

constexpr std::array<uint32_t, 256> MakeCrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
    table[byte] = crc;
  }
  return table;
}

template <class T>
void PutLittleEndian(std::string& bytes, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xff);
}

// A CRC of bytes that hold CRCs would be weak, so stored ones are masked.
uint32_t MaskedCrc(std::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

// The wire types of a protocol buffer: the key of a field is number * 8 + wire type.
enum FieldKind : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void PutVarint(std::string& bytes, uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  bytes += static_cast<char>(value);
}

void PutKey(std::string& message, uint64_t field, FieldKind wire) {
  PutVarint(message, field << 3 | wire);
}

void PutInt(std::string& message, uint64_t field, int64_t value) {
  PutKey(message, field, kVarint);
  PutVarint(message, static_cast<uint64_t>(value));
}

void PutDouble(std::string& message, uint64_t field, double value) {
  PutKey(message, field, kFixed64);
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  PutLittleEndian(message, bits);
}

void PutFloat(std::string& message, uint64_t field, float value) {
  PutKey(message, field, kFixed32);
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  PutLittleEndian(message, bits);
}

void PutBytes(std::string& message, uint64_t field, std::string_view value) {
  PutKey(message, field, kBytes);
  PutVarint(message, value.size());
  message += value;
}

std::string EventNow() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string event;
  PutDouble(event, 1, std::chrono::duration<double>(now).count());
  return event;
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = MakeCrcTable();
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  return ~crc;
}

std::string TfRecord(std::string_view payload) {
  std::string record;
  PutLittleEndian<uint64_t>(record, payload.size());
  PutLittleEndian(record, MaskedCrc(record));
  record += payload;
  PutLittleEndian(record, MaskedCrc(payload));
  return record;
}

EventFile::EventFile(const std::filesystem::path& path) : path_(path), fd_(CreateFile(path)) {
  std::string event = EventNow();
  PutBytes(event, 3, "brain.Event:2");
  Write(event);
}

EventFile::~EventFile() { ::close(fd_); }

void EventFile::Write(int64_t step, const Scalars& scalars) {
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    std::string value;  // Summary.Value: tag = 1, simple_value = 2
    PutBytes(value, 1, tag);
    PutFloat(value, 2, static_cast<float>(number));
    PutBytes(summary, 1, value);
  }
  std::string event = EventNow();
  PutInt(event, 2, step);
  PutBytes(event, 5, summary);
  Write(event);
}

void EventFile::BeginAt(int64_t step) {
  constexpr int64_t kStart = 1;  // SessionLog.SessionStatus
  std::string log;
  PutInt(log, 1, kStart);
  std::string event = EventNow();
  PutInt(event, 2, step);
  PutBytes(event, 7, log);
  Write(event);
}

void EventFile::Write(std::string_view event) {
  std::string record = TfRecord(event);
  while (!record.empty()) {
    const ssize_t written = ::write(fd_, record.data(), record.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      throw RunFileError(fmt::format("cannot write {}: {}", path_.string(), std::strerror(errno)),
                         errno == ENOSPC ? "the disk is full: free some space" : "");
    }
    record.erase(0, static_cast<size_t>(written));
  }
}

}  // namespace dtrain
