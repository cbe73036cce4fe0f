#include "framework/report/report_page.h"

#include <ctime>
#include <fstream>
#include <map>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/core/process.h"
#include "framework/report/assets.h"
#include "framework/report/run_report.h"

namespace dtrain {
namespace {

using nlohmann::ordered_json;

// Returns JSON in which every '<' is escaped, so that no HTML parser finds the end of the script element in it.
std::string ForScript(const ordered_json& json) {
  const std::string text = json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

// Replaces "<!-- dtrain:MARK -->" by the text; the template contains each mark once.
void Fill(std::string& page, std::string_view mark, std::string_view text) {
  const std::string place = fmt::format("<!-- dtrain:{} -->", mark);
  page.replace(page.find(place), place.size(), text);
}

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
      {"version", SourceRevision()},
      {"written", fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::time(nullptr)))},
      {"runs", ordered_json::array()}};
  for (const std::filesystem::path& run : runs) data["runs"].push_back(ReportOf(run));
  TellApart(data["runs"]);
  std::string page(assets::kPage);
  std::string reload;
  if (options.reload_seconds > 0) {
    reload = fmt::format(R"(<meta http-equiv="refresh" content="{}">)", options.reload_seconds);
  }
  Fill(page, "reload", reload);
  Fill(page, "style", fmt::format("<style>\n{}</style>", assets::kStyle));
  Fill(page, "data",
       fmt::format(R"(<script type="application/json" id="data">{}</script>)", ForScript(data)));
  Fill(page, "scripts",
       fmt::format("<script>\n{}</script>\n<script>\n{}{}{}{}</script>", assets::kChartLibrary,
                   assets::kElements, assets::kCharts, assets::kSections, assets::kReport));
  return page;
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
