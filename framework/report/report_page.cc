#include "framework/report/report_page.h"

#include <fstream>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/core/process.h"
#include "framework/report/assets.h"
#include "framework/report/html_page.h"
#include "framework/report/run_report.h"

namespace dtrain {
namespace {

using nlohmann::ordered_json;

// Runs of several sweeps may have the same folder name; these are shown with their paths.
void TellApart(ordered_json& runs) {
  std::map<std::string, int> count;
  for (const ordered_json& run : runs) ++count[run["name"]];
  for (ordered_json& run : runs) {
    if (count[run["name"]] > 1) run["name"] = run["path"];
  }
}

}  // namespace

std::string ReportPage(const std::vector<std::filesystem::path>& runs, const PageOptions& options) {
  ordered_json data = {
      {"version", SourceRevision()}, {"written", PageTime()}, {"runs", ordered_json::array()}};
  for (const std::filesystem::path& run : runs) data["runs"].push_back(ReportOf(run));
  TellApart(data["runs"]);
  return HtmlPage(data, fmt::format("{}{}", assets::kSections, assets::kReport),
                  options.reload_seconds);
}

bool IsReportPage(const std::filesystem::path& path) {
  constexpr size_t kHeadBytes = 2000;  // the title of page/report.html is in these
  std::string head(kHeadBytes, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(in.gcount()));
  return head.empty() || head.find("<title>dtrain report</title>") != std::string::npos;
}

}  // namespace dtrain
