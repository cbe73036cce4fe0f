// `dtrain report` shows what runs did, as one HTML file with charts, or as CSV.
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
#include "framework/runtime/launch/stop_signal.h"
#include "framework/runtime/report/report_csv.h"
#include "framework/runtime/report/report_page.h"
#include "framework/runtime/report/run_report.h"
#include "framework/runtime/results/run_lock.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr int kFollowSeconds = 3;  // between two looks at a run that goes on

struct ReportOptions {
  std::vector<std::string> runs;
  std::string output;
  bool csv = false;
  bool follow = false;
};

// The files that the shell makes of runs/rates/* beside the folders of the runs are no error.
void PassOverFiles(std::vector<std::string>& arguments) {
  const auto is_file = [](const std::string& argument) { return fs::is_regular_file(argument); };
  if (std::all_of(arguments.begin(), arguments.end(), is_file)) return;
  for (const std::string& argument : arguments) {
    if (is_file(argument)) log::Info("{} is a file, no run, and is passed over", argument);
  }
  std::erase_if(arguments, is_file);
}

// A sweep's may become more while it goes on.
std::vector<fs::path> RunsOf(const ReportOptions& options) {
  std::vector<fs::path> runs;
  for (const std::string& argument : options.runs) {
    for (fs::path& run : RunsIn(argument)) runs.push_back(std::move(run));
  }
  return runs;
}

// A sweep has a lock of its own, which bridges the time between two of its runs.
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

// Until no run has gone on at two looks in a row (between two attempts of a run there is none), or until the
// user does not want to wait any longer.
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

// Returns the path of the page that was not named.  Throws where a file that is no such page lies there.
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
                   "run folders, or the folder of a sweep or of --seeds: all of its runs; several "
                   "are shown side by side")
      ->required()
      ->type_name("RUN");
  command
      ->add_option("--output", options->output,
                   "the file to write (default: report.html in the first folder; --csv prints)")
      ->type_name("FILE");
  command->add_flag("--csv", options->csv, "every number of the runs as CSV, one a line");
  command->add_flag(
      "--follow", options->follow,
      "write the page again and again until the runs have ended; an open one reloads");
}

DTRAIN_COMMAND("report", 35, AddReportCommand);

}  // namespace dtrain
