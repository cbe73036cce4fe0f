// `dtrain report`: shows the results of runs as one HTML file with charts, or as CSV.
#include <signal.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/cli/command.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/printable.h"
#include "framework/launch/stop_signal.h"
#include "framework/report/report_csv.h"
#include "framework/report/report_page.h"
#include "framework/report/run_report.h"
#include "framework/results/run_lock.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr int kFollowSeconds = 3;  // interval between two checks of a running run

struct ReportOptions {
  std::vector<std::string> runs;
  std::string output;
  bool csv = false;
  bool follow = false;
};

// Skips files among the arguments: the shell expands runs/rates/* to files as well as run folders.
void PassOverFiles(std::vector<std::string>& arguments) {
  const auto is_file = [](const std::string& argument) { return fs::is_regular_file(argument); };
  if (std::all_of(arguments.begin(), arguments.end(), is_file)) return;
  for (const std::string& argument : arguments) {
    if (is_file(argument)) log::Info("{} is a file, no run, and is passed over", argument);
  }
  std::erase_if(arguments, is_file);
}

// Returns the runs to show.  It is called again for every page, because a running sweep adds runs.
std::vector<fs::path> RunsOf(const ReportOptions& options) {
  std::vector<fs::path> runs;
  for (const std::string& argument : options.runs) {
    for (fs::path& run : RunsIn(argument)) runs.push_back(std::move(run));
  }
  return runs;
}

// A sweep has its own lock, which also covers the time between two of its runs.
bool AnyGoesOn(const ReportOptions& options) {
  const std::vector<fs::path> runs = RunsOf(options);
  return std::any_of(options.runs.begin(), options.runs.end(), RunGoesOn) ||
         std::any_of(runs.begin(), runs.end(), RunGoesOn);
}

int PrintCsv(const ReportOptions& options, bool json) {
  if (options.follow) {
    throw UsageError("--follow rewrites a page, and --csv makes none", "give one of the two");
  }
  if (json) throw UsageError("--csv and --json are two ways to print", "give one of the two");
  const std::string csv = ReportCsv(RunsOf(options));
  if (options.output.empty()) {
    std::cout << csv;
  } else {
    WriteOutput(options.output, csv);
  }
  return 0;
}

// Rewrites the page until no run was going on at two checks in a row (a run has no lock between two attempts), or until
// a signal arrives.
void Follow(const ReportOptions& options, const fs::path& output) {
  const BlockedSignals signals;
  for (int ended = 0; ended < 2;) {
    for (int tenth = 0; tenth < 10 * kFollowSeconds; ++tenth) {
      const int signal = signals.Wait(0.1);
      if (signal != 0 && signal != SIGCHLD) return;
    }
    ended = AnyGoesOn(options) ? 0 : ended + 1;
    if (ended != 0) continue;
    WriteOutput(output, ReportPage(RunsOf(options), {.reload_seconds = kFollowSeconds}));
  }
}

// Returns the default path of the page.  Throws if a file that is not a report exists there.
fs::path UsualPage(const fs::path& folder) {
  fs::path page = folder / "report.html";
  if (!fs::is_regular_file(page) || IsReportPage(page)) return page;
  throw UsageError(
      fmt::format("{} is no report of dtrain, and this one would write over it", page.string()),
      "name another file with --output");
}

int WritePage(const ReportOptions& options, bool json) {
  const fs::path output =
      options.output.empty() ? UsualPage(options.runs.front()) : fs::path(options.output);
  if (options.follow && AnyGoesOn(options)) {
    WriteOutput(output, ReportPage(RunsOf(options), {.reload_seconds = kFollowSeconds}));
    log::Info("{} is written again every {} s until the run ends", output.string(), kFollowSeconds);
    Follow(options, output);
  }
  WriteOutput(output, ReportPage(RunsOf(options)));
  if (json) {
    std::cout << JsonText(nlohmann::ordered_json{{"report", output.string()}}, 2) << '\n';
  } else {
    std::cout << output.string() << '\n';
  }
  return 0;
}

}  // namespace

static void AddReportCommand(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App* command =
      AddCommand(app, invocation, "report", "show what runs did: one HTML file with charts, or CSV",
                 [&invocation, options] {
                   PassOverFiles(options->runs);
                   return options->csv ? PrintCsv(*options, invocation.json)
                                       : WritePage(*options, invocation.json);
                 });
  command
      ->add_option("runs", options->runs,
                   "run folders, shown side by side; the folder of a sweep or of --seeds stands "
                   "for all its runs")
      ->required()
      ->type_name("RUN");
  command
      ->add_option("--output", options->output,
                   "the file to write (default: report.html in the first folder; --csv prints)")
      ->type_name("FILE");
  command->add_flag("--csv", options->csv, "write every number of the runs as CSV, one a line");
  command->add_flag(
      "--follow", options->follow,
      "rewrite the page until the runs have ended; a browser that shows it reloads it");
}

DTRAIN_COMMAND("report", 35, AddReportCommand);

}  // namespace dtrain
