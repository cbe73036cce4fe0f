// The runs of `dtrain sweep`: which runs there are, which are finished, and their results.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "framework/cli/command.h"
#include "framework/cli/result_table.h"
#include "framework/study/settings.h"

namespace dtrain {

struct SweepRun {
  std::vector<Setting> settings;  // all settings that the command line gives
  std::vector<Setting> varied;    // those that have several values in the sweep
  std::string folder;             // the run's output folder
  bool done = false;              // it completed with this config
  int exit_code = 0;

  // Returns the name of the run's table row: the varied settings without the seed.
  std::string Row() const;
};

struct SweepPlan {
  ConfigOptions config;    // without the varied settings
  std::string output;      // the sweep's output folder
  bool simulated = false;  // virtual time, real gradients
  std::vector<SweepRun> runs;
};

// Makes a run for every combination of the settings, each with its own folder below `output`, and checks all of their
// configs.  Throws ConfigError for an error in any of them, and UsageError if a folder holds another run.
SweepPlan PlanSweep(const ConfigOptions& options, const std::string& output, bool simulated);

// Returns the command line arguments that execute one run.
std::vector<std::string> ArgumentsOf(const SweepPlan& plan, const SweepRun& run);

// True if summary.json reports that the run completed, and its config is the one planned.
bool IsDone(const SweepPlan& plan, const SweepRun& run);

// Makes a table with one row for each combination of the settings other than `seed`, over the finished runs.
ResultTable TableOf(const SweepPlan& plan);

// Returns the content of sweep.jsonl: one line for each run and one for each table row.
std::string SweepLines(const SweepPlan& plan);

// Throws UsageError if the folder contains a sweep.jsonl that was not written by a sweep.
void RefuseLinesOfOthers(const SweepPlan& plan);
std::filesystem::path LinesFileOf(const SweepPlan& plan);

}  // namespace dtrain
