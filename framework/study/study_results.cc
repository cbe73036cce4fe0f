#include "framework/study/study_results.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "framework/core/text.h"

namespace dtrain {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
constexpr double kUnreached = std::numeric_limits<double>::infinity();

// Returns the value that counts of a run.  The figures that a run had before it diverged say nothing of its method.
double ValueOf(const Study& study, const StudyMeasure& measure, const JobRecord& record) {
  const double value = record.Measure(measure.value);
  if (record.completed() || std::isinf(value)) return value;
  return measure.name == study.rank_by ? kUnreached : kNoValue;
}

StudyCell CellOf(std::vector<double> values) {
  const size_t of = values.size();
  std::erase_if(values, [](double value) { return std::isnan(value); });
  std::sort(values.begin(), values.end());
  return {std::move(values), of};
}

// Returns "solver.lr=0.1 (the last tried)": a better value may lie beyond the first and the last.
std::string TunedText(const Study& study, const std::vector<Setting>& tuned) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < tuned.size(); ++i) {
    const std::vector<std::string>& tried = study.tuning.keys[i].values;
    texts.push_back(tuned[i].text());
    if (tried.size() < 2) continue;
    if (tuned[i].value == tried.front()) texts.back() += " (the first tried)";
    if (tuned[i].value == tried.back()) texts.back() += " (the last tried)";
  }
  return Join(texts);
}

std::string BoundOf(const StudyClaim& claim) {
  std::vector<std::string> bounds;
  if (claim.at_least) bounds.push_back(">= " + ShortNumber(*claim.at_least));
  if (claim.at_most) bounds.push_back("<= " + ShortNumber(*claim.at_most));
  if (claim.about) {
    bounds.push_back(
        fmt::format("{} within {:g} %", ShortNumber(*claim.about), 100 * claim.within));
  }
  return Join(bounds);
}

bool Meets(const StudyClaim& claim, double value) {
  if (claim.at_least && !(value >= *claim.at_least)) return false;
  if (claim.at_most && !(value <= *claim.at_most)) return false;
  return !claim.about || std::abs(value - *claim.about) <= claim.within * std::abs(*claim.about);
}

size_t IndexOf(const std::string& name, const auto& all) {
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const auto& it) { return it.name == name; });
  return static_cast<size_t>(at - all.begin());
}

class ClaimEvaluator {
 public:
  ClaimEvaluator(const Study& study, const std::vector<StudyRow>& rows)
      : study_(study), rows_(rows) {}

  ClaimResult Evaluate(const StudyClaim& claim) const {
    ClaimResult result{.claim = &claim, .bound = BoundOf(claim)};
    if (!claim.value) {
      result.verdict = ClaimVerdict::kUntested;
      result.detail = claim.untested;
      return result;
    }
    std::vector<double> values;
    size_t ran = 0, met = 0, missing = 0;
    for (const size_t of : CasesOf(claim)) {
      if (!HasRun(claim, of)) {
        ++missing;
        continue;
      }
      ++ran;
      const double value = ValueIn(claim, of);
      // All runs diverged, or both sides of a ratio were never reached: that is no support for a claim.
      if (std::isnan(value)) continue;
      values.push_back(value);
      met += Meets(claim, value) ? 1 : 0;
    }
    if (ran == 0) return result;
    if (values.empty()) {
      result.ours = "none";
    } else {
      const auto [least, most] = std::minmax_element(values.begin(), values.end());
      result.ours = ShortNumber(*least);
      if (ShortNumber(*most) != result.ours) result.ours += " to " + ShortNumber(*most);
    }
    result.verdict = met == ran ? ClaimVerdict::kHolds
                     : met > 0  ? ClaimVerdict::kInPart
                                : ClaimVerdict::kFails;
    std::vector<std::string> details;
    if (ran > 1) details.push_back(fmt::format("in {} of {} cases", met, ran));
    if (values.size() < ran) {
      details.push_back(
          ran > 1 ? Counted(static_cast<int64_t>(ran - values.size()), "case") + " without a value"
                  : "there is no value: a run diverged, or no side reached its target");
    }
    if (missing > 0) details.push_back(Counted(static_cast<int64_t>(missing), "case") + " missing");
    const auto [ended, asked] = RunsOf(claim);
    result.so_far = ended < asked;
    if (ended < asked) details.push_back(fmt::format("{} of {} runs", ended, asked));
    result.detail = Join(details);
    return result;
  }

 private:
  const StudyRow& RowOf(size_t case_index, const std::string& method) const {
    return rows_[case_index * study_.methods.size() + IndexOf(method, study_.methods)];
  }
  // Returns the cases in which a claim is evaluated: one if all its names have a case, else all.
  std::vector<size_t> CasesOf(const StudyClaim& claim) const {
    const auto names = claim.value->names();
    const bool all_named = std::all_of(names.begin(), names.end(), [](const NamedValue& named) {
      return named.arguments.size() == 2;
    });
    std::vector<size_t> cases;
    for (size_t c = 0; c < (all_named ? 1 : study_.cases.size()); ++c) cases.push_back(c);
    return cases;
  }
  const StudyRow& RowOf(const NamedValue& named, size_t case_index) const {
    if (named.arguments.size() == 2) case_index = IndexOf(named.arguments[1], study_.cases);
    return RowOf(case_index, named.arguments[0]);
  }
  // True if each method that the claim is about has a run in the case.
  bool HasRun(const StudyClaim& claim, size_t case_index) const {
    const auto names = claim.value->names();
    return std::all_of(names.begin(), names.end(),
                       [&](const NamedValue& named) { return RowOf(named, case_index).runs > 0; });
  }
  double ValueIn(const StudyClaim& claim, size_t case_index) const {
    return claim.value->Evaluate([&](const NamedValue& named) {
      return RowOf(named, case_index).cells[IndexOf(named.name, study_.measures)].median();
    });
  }
  // Returns how many of the runs that the claim is about have ended, and of how many.
  std::pair<size_t, size_t> RunsOf(const StudyClaim& claim) const {
    std::set<const StudyRow*> rows;
    for (const size_t of : CasesOf(claim)) {
      for (const NamedValue& named : claim.value->names()) rows.insert(&RowOf(named, of));
    }
    size_t ended = 0, asked = 0;
    for (const StudyRow* row : rows) {
      ended += row->runs;
      asked += row->asked;
    }
    return {ended, asked};
  }

  const Study& study_;
  const std::vector<StudyRow>& rows_;
};

// Takes the measure of each method by workload.  A workload that some method has not run (NaN) does not count.
std::vector<PerformanceProfile> ProfilesOf(
    const Study& study,
    const std::map<std::pair<size_t, uint64_t>, std::vector<double>>& workloads) {
  constexpr double kTauEnd = 4;
  std::vector<PerformanceProfile> profiles;
  for (size_t m = 0; m < study.methods.size(); ++m) {
    std::vector<double> ratios;
    for (const auto& [workload, values] : workloads) {
      if (std::ranges::any_of(values, [](double value) { return std::isnan(value); })) continue;
      const double best = *std::min_element(values.begin(), values.end());
      const bool solved = std::isfinite(values[m]);
      ratios.push_back(!solved ? kUnreached : values[m] == best ? 1 : values[m] / best);
    }
    if (ratios.empty()) return {};
    std::sort(ratios.begin(), ratios.end());
    PerformanceProfile profile{.method = study.methods[m].name};
    const auto count = static_cast<double>(ratios.size());
    const auto add = [&](double tau, double share) {
      profile.tau.push_back(tau);
      profile.share.push_back(share);
    };
    double solved = 0;
    for (const double ratio : ratios) {
      if (ratio > kTauEnd) break;
      if (solved > 0 || ratio > 1) add(ratio, solved / count);  // the step's foot
      add(ratio, ++solved / count);
      profile.score += (kTauEnd - ratio) / (kTauEnd - 1) / count;
    }
    add(kTauEnd, solved / count);
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

}  // namespace

std::string ShortNumber(double value) {
  if (std::isnan(value)) return "-";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value != 0 && (std::abs(value) >= 1e7 || std::abs(value) < 1e-4))
    return fmt::format("{:.4g}", value);
  const int whole = value == 0 ? 1 : static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;
  std::string text = fmt::format("{:.{}f}", value, std::clamp(4 - whole, 0, 8));
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

double StudyCell::median() const {
  if (values.empty()) return kNoValue;
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string StudyCell::Text() const {
  if (values.empty()) return "-";
  std::string text = ShortNumber(median());
  if (values.front() != values.back()) {
    text += fmt::format(" [{}, {}]", ShortNumber(values.front()), ShortNumber(values.back()));
  }
  return values.size() == of ? text : text + fmt::format(" ({} of {})", values.size(), of);
}

std::string ClaimResult::Text() const {
  const std::string_view text = NameIn(
      {"holds", "holds in part", "does not hold", "cannot be tested here", "not run yet"}, verdict);
  return std::string(text) + (so_far ? " so far" : "");
}

StudyResults MakeResults(const Study& study, const StudyPlan& plan, const StudyRecords& records) {
  StudyResults results;
  results.asked = plan.results();
  // `values` is by row, measure and seed; the next one by workload and method.
  std::vector<std::vector<std::vector<double>>> values(
      study.cases.size() * study.methods.size(),
      std::vector<std::vector<double>>(study.measures.size()));
  std::map<std::pair<size_t, uint64_t>, std::vector<double>> workloads;
  for (size_t row = 0; row < values.size(); ++row) {
    results.rows.push_back({.case_index = row / study.methods.size(),
                            .method = row % study.methods.size(),
                            .asked = study.seeds.size()});
  }
  std::set<std::string> revisions;
  for (const StudyRun& run : plan.ResultRuns(records)) {
    const size_t at = run.case_index * study.methods.size() + run.method;
    StudyRow& row = results.rows[at];
    row.tuned = TunedText(study, run.tuned);
    const JobRecord* const record = records.Find(run.id);
    if (record == nullptr) {
      results.missing.push_back(run.job.name);
      continue;
    }
    ++results.ended;
    ++row.runs;
    row.failed += record->completed() ? 0 : 1;
    revisions.insert(record->revision);
    for (size_t i = 0; i < study.measures.size(); ++i) {
      const double value = ValueOf(study, study.measures[i], *record);
      values[at][i].push_back(value);
      if (study.measures[i].name != study.rank_by) continue;
      std::vector<double>& workload = workloads[{run.case_index, run.seed}];
      workload.resize(study.methods.size(), kNoValue);
      workload[run.method] = std::isnan(value) ? kUnreached : value;
    }
  }
  for (size_t row = 0; row < values.size(); ++row) {
    for (std::vector<double>& of_seeds : values[row]) {
      results.rows[row].cells.push_back(CellOf(std::move(of_seeds)));
    }
  }
  const ClaimEvaluator evaluator(study, results.rows);
  for (const StudyClaim& claim : study.claims) results.claims.push_back(evaluator.Evaluate(claim));
  results.profiles = ProfilesOf(study, workloads);
  results.revisions.assign(revisions.begin(), revisions.end());
  return results;
}

}  // namespace dtrain
