// Everything that the report page shows of one run, as JSON (page/report.js reads it).
#pragma once

#include <filesystem>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace dtrain {

// {"name", "path", "state", "summary", "config", "steps", "evaluations", "ranks", "traffic", "staleness",
//  "plan", "timeline", "notes"}: "state" is summary.json's status, "running" or "unfinished"; "config" is
// [["solver.lr", "0.01"], ...]; what the folder does not tell is left out.
//
// Throws UsageError where the folder is none or holds no run.
nlohmann::ordered_json ReportOf(const std::filesystem::path& folder);

// Throws the same.
void CheckRunFolder(const std::filesystem::path& folder);

// The folder itself where a run was, else the runs in it, in the order of their names: those of a sweep, of
// --seeds.  Throws UsageError where there is none.
std::vector<std::filesystem::path> RunsIn(const std::filesystem::path& folder);

}  // namespace dtrain
