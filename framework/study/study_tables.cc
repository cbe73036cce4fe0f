#include "framework/study/study_tables.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "framework/core/text.h"

namespace dtrain {
namespace {

// Every digit, so that a file of results loses nothing; "inf" for a target that was missed.
std::string ExactNumber(double value) { return std::isnan(value) ? "" : fmt::format("{}", value); }

bool HasCases(const Study& study) { return !study.cases.front().name.empty(); }

std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string MarkdownCell(const std::string& text) {
  std::string cell;
  for (const char c : OneLine(text)) {
    if (c == '|') cell += '\\';
    cell += c;
  }
  return cell.empty() ? " " : cell;
}

std::string MarkdownRow(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) row += " " + MarkdownCell(cell) + " |";
  return row + "\n";
}

std::string MarkdownTableOf(const std::vector<std::string>& head,
                            const std::vector<std::vector<std::string>>& rows) {
  std::string table = MarkdownRow(head) + MarkdownRow(std::vector<std::string>(head.size(), "---"));
  for (const auto& row : rows) table += MarkdownRow(row);
  return table;
}

std::vector<std::string> HeadOf(const Study& study) {
  std::vector<std::string> head;
  if (HasCases(study)) head.emplace_back("case");
  head.insert(head.end(), {"method", "seeds"});
  if (!study.tuning.keys.empty()) head.emplace_back("tuned");
  for (const StudyMeasure& measure : study.measures) head.push_back(measure.value.text());
  return head;
}

std::vector<std::string> CellsOf(const Study& study, const StudyRow& row) {
  std::vector<std::string> cells;
  if (HasCases(study)) cells.push_back(study.cases[row.case_index].name);
  cells.push_back(study.methods[row.method].name);
  std::string runs = row.runs == row.asked ? std::to_string(row.runs)
                                           : fmt::format("{} of {}", row.runs, row.asked);
  if (row.failed > 0) runs += fmt::format(", {} failed", row.failed);
  cells.push_back(runs);
  if (!study.tuning.keys.empty()) cells.push_back(row.tuned.empty() ? "not tuned yet" : row.tuned);
  for (const StudyCell& cell : row.cells) cells.push_back(cell.Text());
  return cells;
}

std::string LatexText(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (std::string("&%$#_{}").find(c) != std::string::npos) escaped += '\\';
    if (c == '\\' || c == '~' || c == '^') {
      escaped += fmt::format("\\char`\\{}", c);
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string LatexRow(const std::vector<std::string>& cells) {
  std::vector<std::string> escaped;
  for (const std::string& cell : cells) escaped.push_back(LatexText(cell));
  return "  " + Join(escaped, " & ") + " \\\\\n";
}

}  // namespace

std::string ResultsCsv(const Study& study, const std::vector<StudyRun>& runs,
                       const StudyRecords& records) {
  std::vector<std::string> head = {"phase", "case", "method", "seed"};
  for (const VariedSetting& key : study.tuning.keys) head.push_back(key.key);
  head.emplace_back("exit_code");
  for (const StudyMeasure& measure : study.measures) head.push_back(measure.name);
  if (!study.tuning.keys.empty()) head.emplace_back("validation_score");
  head.insert(head.end(), {"revision", "device", "id"});
  std::vector<std::vector<std::string>> lines = {head};
  for (const StudyRun& run : runs) {
    const JobRecord* const record = records.Find(run.id);
    if (record == nullptr) continue;
    std::vector<std::string> line = {run.tuning ? "tuning" : "result",
                                     study.cases[run.case_index].name,
                                     study.methods[run.method].name, std::to_string(run.seed)};
    for (const Setting& setting : run.tuned) line.push_back(setting.value);
    line.push_back(std::to_string(record->exit_code));
    for (const StudyMeasure& measure : study.measures) {
      line.push_back(ExactNumber(record->Measure(measure.value)));
    }
    if (!study.tuning.keys.empty()) line.push_back(ExactNumber(record->ValidationScore()));
    line.insert(line.end(), {record->revision, record->device, run.id});
    lines.push_back(std::move(line));
  }
  std::string csv;
  for (const std::vector<std::string>& line : lines) {
    std::vector<std::string> cells;
    for (const std::string& cell : line) cells.push_back(CsvField(cell));
    csv += Join(cells, ",") + "\n";
  }
  return csv;
}

std::string MarkdownTable(const Study& study, const StudyPlan& plan, const StudyResults& results) {
  std::string text = "# " + OneLine(study.title) + "\n\n";
  if (!study.paper.empty()) text += fmt::format("Paper: {}.\n", study.paper);
  if (!study.paper_says.empty()) text += fmt::format("It says: {}.\n", study.paper_says);
  text += fmt::format(
      "\n{} of {} runs have ended{}; {}, seeds {}", results.ended, results.asked,
      results.revisions.empty() ? "" : ", made by dtrain " + Join(results.revisions),
      study.simulated
          ? (study.sizes_only() ? "simulated by sizes only" : "simulated with real gradients")
          : "trained",
      fmt::join(study.seeds, ", "));
  text += ". A cell is the median over the seeds, with the least and the largest value.\n";
  if (!results.claims.empty()) {
    std::vector<std::vector<std::string>> rows;
    for (const ClaimResult& result : results.claims) {
      const StudyClaim& claim = *result.claim;
      std::string verdict = result.Text();
      if (!result.detail.empty()) verdict += " (" + result.detail + ")";
      if (!claim.note.empty()) verdict += ". " + claim.note;
      rows.push_back({claim.text, claim.paper, result.ours, result.bound, verdict});
    }
    text += "\n" + MarkdownTableOf({"claim", "paper", "here", "asked", "verdict"}, rows);
  }
  std::vector<std::vector<std::string>> rows;
  for (const StudyRow& row : results.rows) rows.push_back(CellsOf(study, row));
  text += "\n" + MarkdownTableOf(HeadOf(study), rows);
  if (!results.profiles.empty()) {
    text += fmt::format(
        "\nPerformance profiles of {} (the mean share of workloads solved within 1 to 4 times "
        "the best):",
        study.rank_by);
    for (const PerformanceProfile& profile : results.profiles) {
      text += fmt::format(" {} {:.2f}{}", profile.method, profile.score,
                          &profile == &results.profiles.back() ? ".\n" : ",");
    }
  }
  text += "\nTerms: links, samples, workers and tuning are the same for all methods";
  if (plan.unequal_terms().empty()) {
    text += ", and servers for all that have them.\n";
  } else {
    text += " but for these:\n\n";
    for (const UnequalTerm& term : plan.unequal_terms()) {
      text += fmt::format("- {} ({}): {}\n", term.key, term.values, term.why);
    }
  }
  constexpr size_t kNamed = 12;
  const size_t missing = results.asked - results.ended;
  if (missing > 0) {
    const std::vector<std::string> named(
        results.missing.begin(),
        results.missing.begin() + static_cast<ptrdiff_t>(std::min(kNamed, results.missing.size())));
    text += fmt::format("\nMissing: {}", Counted(static_cast<int64_t>(missing), "run"));
    if (!named.empty()) text += ": " + Join(named, "; ");
    if (named.empty()) {
      text += ", which follow the tuning.\n";
    } else {
      text += named.size() < missing ? "; and others.\n" : ".\n";
    }
  }
  return text;
}

std::string LatexTable(const Study& study, const StudyResults& results) {
  const std::vector<std::string> head = HeadOf(study);
  const size_t texts = head.size() - study.measures.size();
  std::string table = "% " + OneLine(study.title) + "\n\\begin{tabular}{" +
                      std::string(texts, 'l') + std::string(study.measures.size(), 'r') +
                      "}\n  \\toprule\n" + LatexRow(head) + "  \\midrule\n";
  for (const StudyRow& row : results.rows) table += LatexRow(CellsOf(study, row));
  return table + "  \\bottomrule\n\\end{tabular}\n";
}

}  // namespace dtrain
