// An excerpt of a few steps from a timeline.json (core/timeline_file.h) for the report: the activities of each rank and
// the all-reduce of each bucket.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace dtrain {

// {"steps": [10, 13], "milliseconds": 40.1, "ranks_left_out": 0,
//  "ranks": [{"rank": 0, "name": "rank 0 (worker 0)", "lanes": [{"name": "compute",
//    "spans": [["compute", begin_ms, end_ms], ["sum", begin_ms, end_ms, bucket], ...]}]}]}
//
// Contains the first 16 ranks, with the spans of 4 steps: steps 11 to 14 of the first rank, or its last four if it has
// fewer.  A lane has at most 400 spans.  Returns null if there is no file or it has no compute spans.  A file of
// several hundred megabytes is read line by line.
nlohmann::ordered_json ExcerptOf(const std::filesystem::path& timeline);

}  // namespace dtrain
