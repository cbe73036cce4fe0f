// EventFile: a writer of TensorBoard event files with scalars.
//
// A file is a sequence of TFRecords: length (u64), masked CRC-32C of the length, payload, masked CRC-32C of the
// payload, all little-endian (tensorflow/core/lib/io/record_writer.h).  Each payload is a protocol buffer of type Event
// (tensorflow/core/util/event.proto), with the fields wall_time = 1, step = 2, file_version = 3, summary = 5,
// session_log = 7.  The first Event has the file_version "brain.Event:2".
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtrain {

// Returns Castagnoli's CRC-32C (RFC 3720, B.4), reflected, as in iSCSI and TFRecord.
uint32_t Crc32c(std::string_view bytes);

// Returns one TFRecord with this payload.
std::string TfRecord(std::string_view payload);

class EventFile {
 public:
  using Scalars = std::vector<std::pair<std::string, double>>;  // by tag

  // The constructor and Write throw RunFileError, naming path and reason, if the disk does not take the data.
  explicit EventFile(const std::filesystem::path& path);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  void Write(int64_t step, const Scalars& scalars);
  // Makes TensorBoard ignore what earlier files contain for `step` and later steps.  Called when a run is resumed
  // before `step`.
  void BeginAt(int64_t step);

 private:
  void Write(std::string_view event);

  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace dtrain
