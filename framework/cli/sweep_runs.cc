#include "framework/cli/sweep_runs.h"

#include <algorithm>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "framework/core/text.h"
#include "framework/results/run_folder.h"
#include "framework/setup/run_setup.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

ConfigOptions ConfigOptionsOf(const SweepPlan& plan, const SweepRun& run) {
  ConfigOptions options = plan.config;
  for (const Setting& setting : run.settings) options.overrides.push_back(setting.text());
  options.overrides.push_back("output=" + config::QuoteYaml(run.folder));
  return options;
}

json SummaryOf(const SweepRun& run) {
  const fs::path path = RunFolder(run.folder).summary();
  if (!fs::exists(path)) return {};
  return json::parse(ReadFile(path), nullptr, /*allow_exceptions=*/false);
}

bool IsOf(const json& summary, const RunConfig& config, bool simulated) {
  return summary.is_object() && summary.value("config_sha256", "") == config.config_sha256 &&
         (summary.value("compute", "") != "real") == simulated;
}

// True if the run in the folder has completed; false if it has not, or has not begun.  Throws if the folder belongs to
// another run.
bool LookInto(const SweepRun& run, const RunConfig& config, bool simulated) {
  const RunFolder folder(run.folder);
  const json summary = SummaryOf(run);
  if (IsOf(summary, config, simulated)) return summary.value("status", "") == "completed";
  const bool begun = fs::exists(folder.config());
  if (summary.is_null() && (!begun || ReadFile(folder.config()) == config.effective_yaml)) {
    return false;
  }
  throw UsageError(run.folder + " holds a run of another config",
                   "choose another --output, or remove the folder");
}

// Makes a name unique: the second run with the same name gets "-2".
std::string OwnName(const std::string& name, std::map<std::string, int>& used) {
  const int count = ++used[name];
  return count == 1 ? name : fmt::format("{}-{}", name, count);
}

// Finds a number in a nested object by its path: "target.seconds".
std::optional<double> NumberAt(const json& summary, const std::string& path) {
  const json* at = &summary;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const auto found = at->find(path.substr(begin, end - begin));
    if (found == at->end()) return std::nullopt;
    at = &*found;
    begin = end + 1;
  }
  return at->is_number() ? std::optional(at->get<double>()) : std::nullopt;
}

struct SweepColumn {
  TableColumn shown;
  const char* path;  // in summary.json
  double scale = 1;
};

std::vector<SweepColumn> SweepColumnsOf(bool simulated) {
  return {{{"accuracy_percent", "accuracy %", 2}, "test.accuracy", 100},
          {{"bleu", "BLEU", 2}, "test.bleu"},
          {{"perplexity", "perplexity", 2}, "test.perplexity"},
          {{"loss", "loss", 4}, "test.loss"},
          {{"seconds", simulated ? "virtual s" : "seconds", 2}, "seconds"},
          {{"target_seconds", "target s", 2}, "target.seconds"},
          {{"samples_per_second", "samples/s", 1}, "samples_per_second"},
          {{"staleness_mean", "staleness", 2}, "staleness.mean"},
          {{"mbytes_sent", "MB sent", 1}, "communication.bytes_sent", 1e-6}};
}

ordered_json SettingsJson(const std::vector<Setting>& settings) {
  ordered_json json = ordered_json::object();
  for (const Setting& setting : settings) json[setting.key] = setting.value;
  return json;
}

}  // namespace

std::string SweepRun::Row() const {
  std::vector<std::string> texts;
  for (const Setting& setting : varied) {
    if (setting.key != "seed") texts.push_back(setting.text());
  }
  return texts.empty() ? "all" : Join(texts, ",");
}

SweepPlan PlanSweep(const ConfigOptions& options, const std::string& output, bool simulated) {
  SweepPlan plan{.config = options, .output = output, .simulated = simulated};
  plan.config.overrides.clear();
  if (plan.output.empty()) {
    plan.output = fmt::format("runs/{}-sweep", fs::path(options.file).stem().string());
  }
  const std::vector<VariedSetting> settings = ReadVariedSettings(options.overrides);
  for (const VariedSetting& setting : settings) {
    if (setting.key != "output") continue;
    throw UsageError("each run of a sweep has an output folder of its own",
                     "name the sweep's folder with --output");
  }
  std::map<std::string, int> used;
  for (const std::vector<Setting>& combination : Combinations(settings)) {
    SweepRun run{combination, VariedOf(combination, settings)};
    run.folder = (fs::path(plan.output) / OwnName(FolderNameOf(run.varied), used)).string();
    const RunConfig config = LoadConfig(ConfigOptionsOf(plan, run));
    RefusePipes({options.file, config.model.file});
    ReadModel(config);
    run.done = LookInto(run, config, simulated);
    plan.runs.push_back(std::move(run));
  }
  return plan;
}

std::vector<std::string> ArgumentsOf(const SweepPlan& plan, const SweepRun& run) {
  std::vector<std::string> arguments = ConfigOptionsOf(plan, run).Arguments();
  arguments.insert(arguments.begin(), plan.simulated ? "simulate" : "train");
  arguments.insert(arguments.end(), {"--output", run.folder});
  if (plan.simulated) {
    arguments.emplace_back("--numeric");
  } else {
    arguments.insert(arguments.end(), {"--resume", "auto"});
  }
  const std::vector<std::string> log_arguments = LogArguments();
  arguments.insert(arguments.end(), log_arguments.begin(), log_arguments.end());
  return arguments;
}

bool IsDone(const SweepPlan& plan, const SweepRun& run) {
  return LookInto(run, LoadConfig(ConfigOptionsOf(plan, run)), plan.simulated);
}

ResultTable TableOf(const SweepPlan& plan) {
  const std::vector<SweepColumn> columns = SweepColumnsOf(plan.simulated);
  std::vector<TableRow> rows;
  for (const SweepRun& run : plan.runs) {
    const std::string name = run.Row();
    auto row = std::find_if(rows.begin(), rows.end(), [&](auto& r) { return r.name == name; });
    if (row == rows.end()) {
      row = rows.insert(rows.end(), TableRow{.name = name});
      row->values.resize(columns.size());
      for (const Setting& setting : run.settings) {
        if (setting.key != "seed") row->settings.emplace_back(setting.key, setting.value);
      }
    }
    if (!run.done) continue;
    ++row->runs;
    const json summary = SummaryOf(run);
    for (size_t c = 0; c < columns.size(); ++c) {
      const auto value = NumberAt(summary, columns[c].path);
      if (value) row->values[c].push_back(*value * columns[c].scale);
    }
  }
  std::vector<TableColumn> shown;
  for (const SweepColumn& column : columns) shown.push_back(column.shown);
  ResultTable table("run", "runs", std::move(shown));
  for (TableRow& row : rows) table.Add(std::move(row));
  return table;
}

fs::path LinesFileOf(const SweepPlan& plan) { return fs::path(plan.output) / "sweep.jsonl"; }

void RefuseLinesOfOthers(const SweepPlan& plan) {
  const fs::path file = LinesFileOf(plan);
  if (!fs::is_regular_file(file)) return;  // if it is no regular file, opening it for writing fails
  std::string line;
  if (std::ifstream in(file, std::ios::binary); !std::getline(in, line)) return;
  const json first = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (first.is_object() && first.contains("kind") && first.contains("settings")) return;
  throw UsageError(file.string() + " was not written by a sweep, and this one would write over it",
                   "choose another --output");
}

std::string SweepLines(const SweepPlan& plan) {
  std::string lines;
  for (const SweepRun& run : plan.runs) {
    const json summary = SummaryOf(run);
    ordered_json line = {
        {"kind", "run"}, {"settings", SettingsJson(run.settings)}, {"folder", run.folder}};
    const bool ended = run.done || run.exit_code != 0;
    if (ended) line["exit_code"] = run.exit_code;
    line["status"] = ended && summary.is_object() ? summary.value("status", "") : "not ended";
    for (const SweepColumn& column : SweepColumnsOf(plan.simulated)) {
      const auto value = NumberAt(summary, column.path);
      if (value) line[column.shown.name] = *value * column.scale;
    }
    lines += JsonText(line) + "\n";
  }
  for (const std::string& row : TableOf(plan).JsonLines()) {
    ordered_json line = {{"kind", "row"}};
    line.update(ordered_json::parse(row));
    lines += JsonText(line) + "\n";
  }
  return lines;
}

}  // namespace dtrain
