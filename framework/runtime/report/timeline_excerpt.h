// A few steps of a timeline.json (core/timeline_file.h), for the report: what each rank did, and when each
// bucket was summed.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace dtrain {

// {"steps": [10, 13], "milliseconds": 40.1, "ranks_left_out": 0,
//  "ranks": [{"rank": 0, "name": "rank 0 (worker 0)", "lanes": [{"name": "compute",
//    "spans": [["compute", begin_ms, end_ms], ["sum", begin_ms, end_ms, bucket], ...]}]}]}
//
// Of the first 16 ranks: the spans of 4 steps of the first rank, its 11th to 14th (its last four where it has
// fewer), at most 400 a lane.  Null where there is no file, or nothing was computed in it.  A file
// of several hundred megabytes is read line by line.
nlohmann::ordered_json ExcerptOf(const std::filesystem::path& timeline);

}  // namespace dtrain
