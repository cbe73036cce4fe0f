// These are the runs of `dtrain sweep`: which there are, which are over already, and what came out of them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "framework/cli/command.h"
#include "framework/cli/result_table.h"
#include "framework/cli/setting_values.h"

namespace dtrain {

struct SweepRun {
  std::vector<Setting> settings;  // all that the command line gives
  std::vector<Setting> varied;    // of which there are other values
  std::string folder;             // the run's own
  bool done = false;              // completed, with this config
  int exit_code = 0;

  // Names its row: the varied settings but the seed.
  std::string Row() const;
};

struct SweepPlan {
  ConfigOptions config;    // without the settings
  std::string output;      // of the sweep
  bool simulated = false;  // virtual time, real gradients
  std::vector<SweepRun> runs;
};

// Makes a run of every combination of the settings, each checked, with a folder below `output` of its own.  Throws
// ConfigError for an error in any of them, and UsageError where a folder holds another run.
SweepPlan PlanSweep(const ConfigOptions& options, const std::string& output, bool simulated);

// Returns what this program is to be called with for a run.
std::vector<std::string> ArgumentsOf(const SweepPlan& plan, const SweepRun& run);

// True where summary.json says that the run has completed, with the config that it is to have.
bool IsDone(const SweepPlan& plan, const SweepRun& run);

// Makes a row of each combination of settings other than `seed`, over the runs that are done.
ResultTable TableOf(const SweepPlan& plan);

// Makes sweep.jsonl: a line a run and a line a row.
std::string SweepLines(const SweepPlan& plan);

// Throws UsageError where a sweep.jsonl that no sweep has written lies in its folder.
void RefuseLinesOfOthers(const SweepPlan& plan);
std::filesystem::path LinesFileOf(const SweepPlan& plan);

}  // namespace dtrain
