#include "framework/study/study_page.h"

#include <nlohmann/json.hpp>

#include "framework/core/process.h"
#include "framework/report/html_page.h"
#include "framework/study/assets.h"

namespace dtrain {
namespace {

using nlohmann::ordered_json;

ordered_json RowsOf(const Study& study, const StudyResults& results) {
  ordered_json rows = ordered_json::array();
  for (const StudyRow& row : results.rows) {
    ordered_json json = {{"case", study.cases[row.case_index].name},
                         {"method", study.methods[row.method].name},
                         {"runs", row.runs},
                         {"asked", row.asked},
                         {"failed", row.failed},
                         {"tuned", row.tuned},
                         {"cells", ordered_json::array()},
                         {"values", ordered_json::array()}};
    for (const StudyCell& cell : row.cells) {
      json["cells"].push_back({{"text", cell.Text()}});
      json["values"].push_back(cell.values);
    }
    rows.push_back(std::move(json));
  }
  return rows;
}

ordered_json ClaimsOf(const StudyResults& results) {
  ordered_json claims = ordered_json::array();
  for (const ClaimResult& result : results.claims) {
    claims.push_back({{"claim", result.claim->text},
                      {"paper", result.claim->paper},
                      {"note", result.claim->note},
                      {"verdict", result.Text()},
                      {"detail", result.detail},
                      {"ours", result.ours},
                      {"bound", result.bound}});
  }
  return claims;
}

ordered_json CurvesOf(const Study& study, const StudyPlan& plan, const StudyRecords& records) {
  ordered_json curves = ordered_json::array();
  for (const StudyRun& run : plan.ResultRuns(records)) {
    const JobRecord* const record = records.Find(run.id);
    if (record == nullptr || record->curve.samples.empty()) continue;
    ordered_json curve = {{"case", study.cases[run.case_index].name},
                          {"method", study.methods[run.method].name},
                          {"seed", run.seed},
                          {"samples", record->curve.samples},
                          {"seconds", record->curve.seconds},
                          {"values", ordered_json::object()}};
    for (const auto& [result, values] : record->curve.values) curve["values"][result] = values;
    curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace

std::string StudyPage(const Study& study, const StudyPlan& plan, const StudyRecords& records,
                      const StudyResults& results) {
  ordered_json data = {{"version", SourceRevision()},
                       {"written", PageTime()},
                       {"title", study.title},
                       {"paper", study.paper},
                       {"paper_says", study.paper_says},
                       {"simulated", study.simulated},
                       {"seeds", study.seeds},
                       {"cases", NamesOf(study.cases)},
                       {"methods", NamesOf(study.methods)},
                       {"rank_by", study.rank_by},
                       {"ended", results.ended},
                       {"asked", results.asked},
                       {"missing", results.missing},
                       {"revisions", results.revisions},
                       {"measures", ordered_json::array()},
                       {"claims", ClaimsOf(results)},
                       {"rows", RowsOf(study, results)},
                       {"terms", ordered_json::array()},
                       {"curves", CurvesOf(study, plan, records)},
                       {"profiles", ordered_json::array()}};
  for (const StudyMeasure& measure : study.measures) {
    data["measures"].push_back({{"name", measure.name}, {"text", measure.value.text()}});
  }
  for (const UnequalTerm& term : plan.unequal_terms()) {
    data["terms"].push_back({{"key", term.key}, {"values", term.values}, {"why", term.why}});
  }
  for (const PerformanceProfile& profile : results.profiles) {
    data["profiles"].push_back({{"method", profile.method},
                                {"tau", profile.tau},
                                {"share", profile.share},
                                {"score", profile.score}});
  }
  return HtmlPage(data, assets::kStudy);
}

}  // namespace dtrain
