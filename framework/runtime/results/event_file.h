// EventFile: the files that TensorBoard reads, as far as scalars need them.
//
// A file is a series of TFRecords - length (u64), masked CRC-32C of the length, payload, masked CRC-32C of
// the payload, little-endian (tensorflow/core/lib/io/record_writer.h) - whose payloads are protocol buffers
// of type Event (tensorflow/core/util/event.proto): wall_time = 1, step = 2, file_version = 3, summary = 5,
// session_log = 7.  The first one says "brain.Event:2".
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtrain {

// Castagnoli's CRC-32C (RFC 3720, B.4), reflected, as iSCSI and TFRecord have it.
uint32_t Crc32c(std::string_view bytes);

// One record of a file.
std::string TfRecord(std::string_view payload);

class EventFile {
 public:
  using Scalars = std::vector<std::pair<std::string, double>>;  // by tag

  // Throw RunFileError, naming path and reason, when the disk does not take it.
  explicit EventFile(const std::filesystem::path& path);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  void Write(int64_t step, const Scalars& scalars);
  // What files before this one hold of `step` and later steps is void: the run was resumed before it.
  void BeginAt(int64_t step);

 private:
  void Write(std::string_view event);

  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace dtrain
