// The data of the report page for one run, as JSON (page/report.js reads it).
#pragma once

#include <filesystem>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace dtrain {

// Returns {"name", "path", "state", "summary", "config", "steps", "evaluations", "ranks", "traffic", "staleness",
// "plan", "timeline", "notes"}.  "state" is summary.json's status, "running" or "unfinished"; "config" is
// [["solver.lr", "0.01"], ...].  Keys for which the folder has no data are left out.
//
// Throws UsageError if `folder` is no folder or contains no run.
nlohmann::ordered_json ReportOf(const std::filesystem::path& folder);

// Throws the UsageError of ReportOf.
void CheckRunFolder(const std::filesystem::path& folder);

// Returns the folder itself if it contains a run, otherwise the runs in its subfolders in the order of their names (for
// example of a sweep or --seeds).  Throws UsageError if there is none.
std::vector<std::filesystem::path> RunsIn(const std::filesystem::path& folder);

}  // namespace dtrain
