// ReportPage makes the report: one HTML file that needs no network, with text, style, charts (Chart.js, embedded when
// dtrain is built) and the numbers of the runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dtrain {

struct PageOptions {
  int reload_seconds = 0;  // interval at which the browser reloads the file; 0: never
};

// Returns a page with one run, or with several side by side.  Throws UsageError if a folder contains no run.
std::string ReportPage(const std::vector<std::filesystem::path>& runs,
                       const PageOptions& options = {});

// True if the file begins like a report, or is empty.
bool IsReportPage(const std::filesystem::path& path);

}  // namespace dtrain
