#include "framework/report/run_report.h"

#include <string.h>  // strverscmp

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/config/tree.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/text.h"
#include "framework/report/rank_report.h"
#include "framework/report/series.h"
#include "framework/report/straggler.h"
#include "framework/report/timeline_excerpt.h"
#include "framework/results/run_files.h"
#include "framework/results/run_folder.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr size_t kPoints = 600;  // points of a curve
constexpr size_t kEvaluationsMost = 2000;
constexpr size_t kBucketsMost = 500;

std::string NameOf(const fs::path& folder) {
  const fs::path path = fs::absolute(folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

void DescribeConfig(const fs::path& path, ordered_json& report) {
  if (!fs::is_regular_file(path)) return;
  config::Diagnostics diagnostics;
  const auto tree = config::ParseYaml(ReadFile(path), config::PlacesIn(path.string()), diagnostics);
  if (!tree) {
    report["notes"].push_back("config.yaml is damaged");
    return;
  }
  ordered_json keys = ordered_json::array();
  for (const config::PathValue& value : config::ValuesByPath(*tree)) {
    keys.push_back({value.path, value.text});
  }
  report["config"] = std::move(keys);
}

// Returns the numbers and the split of an evaluation, unchanged.
ordered_json EvaluationOf(const json& line) {
  ordered_json evaluation;
  for (const auto& [key, value] : line.items()) {
    if (value.is_number()) evaluation[key] = value;
  }
  const std::string split = TextIn(line, "split");
  evaluation["split"] = split.empty() ? "test" : split;
  return evaluation;
}

void NoteDamage(const char* file, int64_t lines, ordered_json& report) {
  if (lines == 0) return;
  report["notes"].push_back(fmt::format("{}: {} could not be read", file, Counted(lines, "line")));
}

void DescribeMetrics(const fs::path& path, ordered_json& report) {
  using Join = Series::Join;
  const std::vector<Series::Column> columns = {{"epoch", Join::kLast},
                                               {"step", Join::kLast},
                                               {"samples", Join::kLast},
                                               {"seconds", Join::kLast},
                                               {"training_seconds", Join::kLast},
                                               {"loss"},
                                               {"lr", Join::kLast},
                                               {"samples_per_second"},
                                               {"exposed_seconds"}};
  Series steps(columns);
  ordered_json evaluations = ordered_json::array();
  const int64_t damaged = ForEachLine(path, [&](const json& line) {
    const std::string kind = TextIn(line, "kind");
    if (kind == "evaluation") evaluations.push_back(EvaluationOf(line));
    if (kind != "step") return;
    Series::Row row;
    for (const Series::Column& column : columns) row.push_back(NumberIn(line, column.name));
    steps.Add(std::move(row));
  });
  NoteDamage("metrics.jsonl", damaged, report);
  if (!steps.empty()) report["steps"] = steps.Json(kPoints);
  if (evaluations.size() > kEvaluationsMost) {
    report["notes"].push_back(fmt::format("the last {} of {} evaluations are shown",
                                          kEvaluationsMost, evaluations.size()));
    evaluations.erase(evaluations.begin(), evaluations.end() - kEvaluationsMost);
  }
  if (!evaluations.empty()) report["evaluations"] = std::move(evaluations);
}

void DescribePlan(const fs::path& path, ordered_json& report) {
  auto plan = ReadJsonObject(path);
  if (!plan) return;
  const auto buckets = plan->find("buckets");
  if (buckets != plan->end() && buckets->is_array() && buckets->size() > kBucketsMost) {
    report["notes"].push_back(
        fmt::format("the first {} of {} buckets are shown", kBucketsMost, buckets->size()));
    buckets->erase(buckets->begin() + kBucketsMost, buckets->end());
  }
  report["plan"] = *std::move(plan);
}

// Times of the whole run are in ranks.jsonl; a simulation has those of its summary alone.
void NameStraggler(ordered_json& report) {
  ordered_json straggler;
  if (report.contains("ranks")) {
    straggler = StragglerOf(report["ranks"]);
  } else if (report.contains("summary") && report["summary"].contains("workers_detail")) {
    straggler = StragglerOf(report["summary"]["workers_detail"]);
  }
  if (!straggler.is_null()) report["straggler"] = std::move(straggler);
}

void NoteGuessing(const json& summary, ordered_json& report) {
  const auto test = summary.find("test");
  if (test == summary.end() || !test->is_object()) return;
  const auto guessing = test->find("guessing");
  if (guessing == test->end() || *guessing != true) return;
  if (const std::optional<double> guess = NumberIn(*test, "guess_accuracy")) {
    report["notes"].push_back(
        fmt::format("the test accuracy is that of guessing: the same answer for every sample has "
                    "{:.2f} %. The model has not learned, or the classes are very uneven",
                    100 * *guess));
  } else if (const std::optional<double> loss = NumberIn(*test, "guess_loss")) {
    report["notes"].push_back(
        fmt::format("the test loss is that of guessing: the mean of the training labels as every "
                    "answer has {:.4g}. The model has not learned",
                    *loss));
  }
}

bool IsRunFolder(const fs::path& folder) {
  const RunFolder run(folder);
  std::error_code none;
  return fs::is_regular_file(run.config(), none) || fs::is_regular_file(run.metrics(), none) ||
         fs::is_regular_file(run.summary(), none);
}

// summary.json may be an earlier attempt's while the run goes on, so the lock is checked first.
std::string StateOf(const fs::path& folder, const std::optional<json>& summary) {
  if (RunGoesOn(folder)) return "running";
  const std::string status = summary ? TextIn(*summary, "status") : "";
  return status.empty() ? "unfinished" : status;
}

}  // namespace

void CheckRunFolder(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    throw UsageError(fmt::format("{}: no such folder", folder.string()),
                     "give the folder of a run, what `dtrain train --output` named");
  }
  if (IsRunFolder(folder)) return;
  throw UsageError(fmt::format("{} is not a run folder: it has no config.yaml, metrics.jsonl or "
                               "summary.json",
                               folder.string()),
                   "give the folder of a run, what `dtrain train --output` named");
}

std::vector<fs::path> RunsIn(const fs::path& folder) {
  if (IsRunFolder(folder) || !fs::is_directory(folder)) return {folder};
  std::vector<fs::path> runs;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (IsRunFolder(entry.path())) runs.push_back(entry.path());
  }
  if (runs.empty()) CheckRunFolder(folder);
  std::sort(runs.begin(), runs.end(), [](const fs::path& a, const fs::path& b) {
    return ::strverscmp(a.c_str(), b.c_str()) < 0;  // sorts seed-2 before seed-10
  });
  return runs;
}

ordered_json ReportOf(const fs::path& folder) {
  CheckRunFolder(folder);
  const RunFolder run(folder);
  ordered_json report = {{"name", NameOf(folder)}, {"path", folder.string()}};
  report["notes"] = ordered_json::array();
  const std::optional<json> summary = ReadJsonObject(run.summary());
  report["state"] = StateOf(folder, summary);
  if (summary) {
    report["summary"] = *summary;
    NoteGuessing(*summary, report);
  }
  DescribeConfig(run.config(), report);
  DescribeMetrics(run.metrics(), report);
  NoteDamage("ranks.jsonl", DescribeRanks(run.ranks(), report), report);
  NameStraggler(report);
  DescribePlan(run.plan(), report);
  ordered_json timeline = ExcerptOf(run.timeline());
  if (!timeline.is_null()) report["timeline"] = std::move(timeline);
  return report;
}

}  // namespace dtrain
