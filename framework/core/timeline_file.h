// TimelineFile writes timeline.json from the lanes that the ranks recorded (timeline.h), one rank at a time.
//
// Chrome's trace event format, JSON object form ("Trace Event Format", Google, 2016): pid is the
// rank, tid the lane, times in microseconds from the ranks' common origin.  Spans are "X" events,
// instants "i", counters "C"; "M" events name ranks and lanes.  "otherData" has the schema and the number of dropped
// events.
//
// Events go to the disk as they are added: the file, which may be several hundred megabytes, is
// never in memory.  It appears under its name only when it is complete (Finish).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "framework/core/file.h"

namespace dtrain {

class TimelineFile {
 public:
  // Every member throws RunFileError with path and reason if the file cannot be written.
  explicit TimelineFile(const std::filesystem::path& path);
  TimelineFile(const TimelineFile&) = delete;
  TimelineFile& operator=(const TimelineFile&) = delete;

  // `packed` is one rank's PackTimelines; the ranks may be added in any order, each once.
  void Add(std::string_view packed);
  void Finish();

 private:
  NewFile file_;  // removed unless Finish completed it
  bool first_event_ = true;
  bool finished_ = false;
  int64_t dropped_ = 0;
};

// True if TimelineFile has written the file completely.  Reads only its end, since the file may be large.
bool IsTimelineFile(const std::filesystem::path& path);

}  // namespace dtrain
