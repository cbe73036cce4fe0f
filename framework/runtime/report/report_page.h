// ReportPage makes the report: one HTML file that needs no network, with text, style, charts (Chart.js, embedded when
// dtrain is built) and the numbers of its runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dtrain {

struct PageOptions {
  int reload_seconds = 0;  // the browser reads the file again after so long; 0: never
};

// Shows one run or several, side by side.  Throws UsageError for a folder that holds no run.
std::string ReportPage(const std::vector<std::filesystem::path>& runs,
                       const PageOptions& options = {});

// True where the file begins as a report does, and where it is empty.
bool IsReportPage(const std::filesystem::path& path);

}  // namespace dtrain
