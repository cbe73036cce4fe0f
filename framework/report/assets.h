// The files of page/ and Chart.js are embedded when dtrain is built
// (tools/cmake/DtrainEmbed.cmake).
#pragma once

#include <string_view>

namespace dtrain::assets {

extern const std::string_view kPage;          // page/report.html, with placeholders
extern const std::string_view kStyle;         // page/report.css
extern const std::string_view kElements;      // page/elements.js
extern const std::string_view kCharts;        // page/charts.js
extern const std::string_view kSections;      // page/sections.js
extern const std::string_view kReport;        // page/report.js
extern const std::string_view kChartLibrary;  // chart.min.js of Debian's libjs-chart.js

}  // namespace dtrain::assets
