// ScenarioOptions: what a simulation, and a real run beside it, are told on the command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/cli/command.h"
#include "framework/core/model_profile.h"

namespace dtrain {

struct ScenarioOptions {
  ConfigOptions config;  // without a file everything has its default
  std::string profile;
  std::string trace;  // record of a run, whose step times are taken
  int workers = 0;    // 0: the config's

  // Settings of a section go with the name that the config gives it: for another name they are dropped.
  void DropSettings(const std::string& section);

  // With `more` overrides behind those given.  Throws UsageError when there is neither a config nor
  // a profile.
  RunConfig Load(const std::vector<std::string>& more = {}) const;
  std::optional<ModelProfile> Profile() const;
  // By worker; empty when none is given.  Throws UsageError when the record has other workers.
  std::vector<std::vector<double>> Trace(const RunConfig& run) const;
  // For commands that take no step times of a run.  Throws UsageError.
  void RefuseTrace() const;
};

void AddScenarioOptions(CLI::App& command, ScenarioOptions& options);

}  // namespace dtrain
