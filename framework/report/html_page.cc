#include "framework/report/html_page.h"

#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/report/assets.h"

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

}  // namespace

std::string HtmlPage(const ordered_json& data, std::string_view scripts, int reload_seconds) {
  std::string page(assets::kPage);
  std::string reload;
  if (reload_seconds > 0) {
    reload = fmt::format(R"(<meta http-equiv="refresh" content="{}">)", reload_seconds);
  }
  Fill(page, "reload", reload);
  Fill(page, "style", fmt::format("<style>\n{}</style>", assets::kStyle));
  Fill(page, "data",
       fmt::format(R"(<script type="application/json" id="data">{}</script>)", ForScript(data)));
  Fill(page, "scripts",
       fmt::format("<script>\n{}</script>\n<script>\n{}{}{}</script>", assets::kChartLibrary,
                   assets::kElements, assets::kCharts, scripts));
  return page;
}

std::string PageTime() {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::time(nullptr)));
}

}  // namespace dtrain
