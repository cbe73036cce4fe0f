#include "framework/cli/scenario.h"

#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/text.h"
#include "framework/results/run_record.h"

namespace dtrain {

void ScenarioOptions::DropSettings(const std::string& section) {
  std::erase_if(config.overrides,
                [&](const std::string& it) { return it.starts_with(section + "."); });
}

RunConfig ScenarioOptions::Load(const std::vector<std::string>& more) const {
  if (config.file.empty() && profile.empty()) {
    throw UsageError("there is nothing to run",
                     "give --config, or --profile for sizes and times only");
  }
  ConfigOptions effective = config;
  effective.SetWorkers(workers);
  effective.overrides.insert(effective.overrides.end(), more.begin(), more.end());
  if (!config.file.empty()) return LoadConfig(effective);
  config::Document document = config::Document::FromText(
      kGhostYaml, "(no config)", effective.Settings(), effective.overlay(), effective.options);
  return ReadGhostConfig(document);
}

std::optional<ModelProfile> ScenarioOptions::Profile() const {
  if (profile.empty()) return std::nullopt;
  return ReadProfile(profile);
}

std::vector<std::vector<double>> ScenarioOptions::Trace(const RunConfig& run) const {
  if (trace.empty()) return {};
  const RunRecord record = ReadRecord(trace);
  if (record.plan.workers != run.workers) {
    throw UsageError(fmt::format("{} is of {}, the run has {}", trace,
                                 Counted(record.plan.workers, "worker"), run.workers),
                     "record a run of as many workers, or change --workers");
  }
  return RecordedStepSeconds(record);
}

void ScenarioOptions::RefuseTrace() const {
  if (trace.empty()) return;
  throw UsageError("--trace gives recorded step times, which this command does not use",
                   "leave it out; simulate and bench exchange use it");
}

void AddScenarioOptions(CLI::App& command, ScenarioOptions& options) {
  AddConfigOption(command, options.config.file,
                  "the run's YAML file, or the name of one of configs/runs");
  AddSettingOptions(command, options.config);
  command
      .add_option("--profile", options.profile,
                  "use the sizes and times of this model profile (dtrain time --profile), without "
                  "real arithmetic")
      ->type_name("FILE");
  command
      .add_option("--trace", options.trace, "take the step times of this recorded run (record.bin)")
      ->type_name("FILE");
  command.add_option("--workers", options.workers, "workers (default: cluster.workers)")
      ->check(CLI::Range(1, 65536));
}

}  // namespace dtrain
