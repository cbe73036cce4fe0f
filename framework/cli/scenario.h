// ScenarioOptions holds the command line options that `simulate`, `plan` and `bench exchange` share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/cli/command.h"
#include "framework/core/model_profile.h"

namespace dtrain {

struct ScenarioOptions {
  ConfigOptions config;  // without a config file everything has its default
  std::string profile;   // model profile (dtrain time --profile); "": none
  std::string trace;     // record of a run (record.bin) whose step times are used; "": none
  int workers = 0;       // 0: the config's number

  // Removes the overrides of this section.  Used when another strategy or compressor than the config's is chosen: the
  // overrides are meant for the config's own.
  void DropSettings(const std::string& section);

  // Reads the config with the given overrides, followed by `more`.  Throws UsageError if there is neither a config nor
  // a profile.
  RunConfig Load(const std::vector<std::string>& more = {}) const;
  std::optional<ModelProfile> Profile() const;
  // Returns the recorded step times by worker, in seconds; empty without --trace.  Throws UsageError if the record is
  // of another number of workers.
  std::vector<std::vector<double>> Trace(const RunConfig& run) const;
  // Throws UsageError if --trace was given.  For commands that do not use recorded step times.
  void RefuseTrace() const;
};

void AddScenarioOptions(CLI::App& command, ScenarioOptions& options);

}  // namespace dtrain
