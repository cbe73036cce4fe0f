// The frame of an HTML page that needs no network: text, style, charts (Chart.js, embedded when dtrain is built), the
// data that its scripts draw, and the scripts.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace dtrain {

// Returns the page.  `scripts` run after Chart.js, elements.js and charts.js (report/page); they find `data` as JSON in
// the element with the id "data".  The browser loads the file again every `reload_seconds`; 0: never.
std::string HtmlPage(const nlohmann::ordered_json& data, std::string_view scripts,
                     int reload_seconds = 0);

// Returns the time of day, for the foot of a page: "2026-11-28 09:30:00".
std::string PageTime();

}  // namespace dtrain
