// TimelineFile: writes timeline.json from what the ranks recorded (timeline.h), one rank at a time.
//
// Chrome's trace event format, JSON object form ("Trace Event Format", Google, 2016): pid is the
// rank, tid the lane, times in microseconds from the ranks' common origin.  Spans are "X" events,
// instants "i", counters "C"; "M" events name ranks and lanes.  "otherData" has the schema, and
// tells how many events were dropped.
//
// Events go to the disk as they are added: the file, which may be several hundred megabytes, is
// never in memory.  It appears under its name when complete (Finish), else not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "framework/core/file.h"

namespace dtrain {

class TimelineFile {
 public:
  // Throws RunFileError, naming path and reason, here as from the others, when it cannot be
  // written.
  explicit TimelineFile(const std::filesystem::path& path);
  TimelineFile(const TimelineFile&) = delete;
  TimelineFile& operator=(const TimelineFile&) = delete;

  // `packed` is one rank's PackTimelines; ranks in any order, each once.
  void Add(std::string_view packed);
  void Finish();

 private:
  NewFile file_;  // goes away where Finish has not completed it
  bool first_event_ = true;
  bool finished_ = false;
  int64_t dropped_ = 0;
};

// True where TimelineFile has written the file.  Reads its end alone, for it may be long.
bool IsTimelineFile(const std::filesystem::path& path);

}  // namespace dtrain
