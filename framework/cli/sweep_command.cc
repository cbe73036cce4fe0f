// `dtrain sweep`: runs a config with every combination of some settings as child processes, `--jobs` at a time, and
// prints one table.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/cli/command.h"
#include "framework/cli/sweep_runs.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/printable.h"
#include "framework/core/text.h"
#include "framework/device/cpu/threads.h"
#include "framework/launch/world.h"
#include "framework/results/run_lock.h"
#include "framework/study/run_jobs.h"

namespace dtrain {
namespace {

struct SweepOptions {
  ConfigOptions config;
  int jobs = 1;
  std::string output;
  bool simulate = false;
};

// Executes the runs that are not done.  Returns the signal that stopped them, or 0.
int RunSweepJobs(SweepPlan& plan, int jobs) {
  const auto write = [&plan] { WriteFileDurably(LinesFileOf(plan), SweepLines(plan)); };
  std::vector<size_t> left;  // indices of the plan's runs
  std::vector<Job> all;
  for (size_t i = 0; i < plan.runs.size(); ++i) {
    const SweepRun& run = plan.runs[i];
    if (run.done) continue;
    left.push_back(i);
    all.push_back({run.folder, run.folder, ArgumentsOf(plan, run)});
  }
  const size_t done = plan.runs.size() - left.size();
  if (done > 0) {
    log::Info("{} of {} are done already", done,
              Counted(static_cast<int64_t>(plan.runs.size()), "run"));
  }
  const int signal = RunJobs(all, jobs, done, [&](size_t job, int code, double) {
    SweepRun& run = plan.runs[left[job]];
    run.exit_code = code;
    run.done = code == 0 && IsDone(plan, run);
    write();
    return run.done;
  });
  write();
  return signal;
}

void Print(const SweepPlan& plan, bool json) {
  const ResultTable table = TableOf(plan);
  if (!json) {
    std::cout << table.Text();
    for (const SweepRun& run : plan.runs) {
      if (!run.done)
        std::cout << fmt::format("failed: {} (exit code {})\n", run.folder, run.exit_code);
    }
    std::cout << fmt::format("results {}\n", plan.output);
    return;
  }
  nlohmann::ordered_json result = {{"output", plan.output}};
  result["rows"] = nlohmann::ordered_json::parse(table.Json());
  result["failed"] = nlohmann::ordered_json::array();
  for (const SweepRun& run : plan.runs) {
    if (run.done) continue;
    result["failed"].push_back({{"folder", run.folder}, {"exit_code", run.exit_code}});
  }
  std::cout << JsonText(result, 2) << '\n';
}

int RunSweep(const SweepOptions& options, const Invocation& invocation) {
  LimitSpinning(invocation.argv);
  if (InsideMpiLaunch()) {
    throw UsageError("a sweep starts its runs itself and needs no launcher",
                     "leave mpirun or srun out");
  }
  SweepPlan plan = PlanSweep(options.config, options.output, options.simulate);
  MakeFolder(plan.output);
  const RunLock lock(plan.output);
  RefuseLinesOfOthers(plan);
  const int signal = RunSweepJobs(plan, options.jobs);
  if (signal != 0) {
    log::Info("the sweep was stopped; the same command resumes it");
    return static_cast<int>(ExitCode::kStopped);
  }
  Print(plan, invocation.json);
  const bool all =
      std::all_of(plan.runs.begin(), plan.runs.end(), [](const SweepRun& run) { return run.done; });
  return all ? 0 : static_cast<int>(ExitCode::kInternal);
}

}  // namespace

static void AddSweepCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<SweepOptions>();
  CLI::App* command = AddCommand(
      app, invocation, "sweep",
      "train with every combination of settings, e.g. --set solver.lr=0.1,0.01 --set seed=1,2",
      [options, &invocation] { return RunSweep(*options, invocation); });
  AddConfigOptions(*command, options->config);
  command->add_option("--jobs", options->jobs, "number of runs at a time")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--output", options->output,
                   "folder of the sweep, with a subfolder for each run; the same command again "
                   "resumes the sweep there (default: runs/CONFIG-sweep)")
      ->type_name("DIR");
  command->add_flag("--simulate", options->simulate,
                    "simulate the runs in virtual time, with real gradients");
}

DTRAIN_COMMAND("sweep", 45, AddSweepCommand);

}  // namespace dtrain
