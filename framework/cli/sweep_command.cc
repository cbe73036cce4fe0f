// `dtrain sweep`: runs a config with every combination of some settings as child processes, `--jobs` at a time, and
// prints one table.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/cli/command.h"
#include "framework/cli/sweep_runs.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/printable.h"
#include "framework/core/process.h"
#include "framework/core/progress_display.h"
#include "framework/core/text.h"
#include "framework/core/time.h"
#include "framework/device/cpu/threads.h"
#include "framework/launch/child_program.h"
#include "framework/launch/world.h"
#include "framework/results/run_lock.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr int kStopped = static_cast<int>(ExitCode::kStopped);
// This is the exit code of a simulation that was stopped, which writes no checkpoint.
constexpr int kInterrupted = 128 + SIGINT;

struct SweepOptions {
  ConfigOptions config;
  int jobs = 1;
  std::string output;
  bool simulate = false;
};

fs::path LogOf(const SweepRun& run) { return fs::path(run.folder) / "log.txt"; }

// Returns ": " and the first error in a run's log; "" if there is none.
std::string FirstErrorIn(const fs::path& log) {
  constexpr std::string_view kTime = "12:34:56", kError = " error ";
  std::ifstream in(log);
  for (std::string line; std::getline(in, line);) {
    if (line.find(kError) != kTime.size()) continue;
    return ": " + Printable(line.substr(kTime.size() + kError.size()));
  }
  return "";
}

// Executes a plan and shows its progress on stderr.
class Sweep {
 public:
  explicit Sweep(SweepPlan& plan) : plan_(plan) {
    for (size_t i = 0; i < plan.runs.size(); ++i) {
      if (!plan.runs[i].done) left_.push_back(i);
    }
  }

  // Returns the signal that stopped it, or 0.
  int Run(int jobs) {
    if (left_.size() < plan_.runs.size()) {
      log::Info("{} of {} are done already", plan_.runs.size() - left_.size(),
                Counted(static_cast<int64_t>(plan_.runs.size()), "run"));
    }
    const std::string program = ProgramFile().string();
    std::vector<ProgramCommand> commands;
    for (const size_t index : left_) {
      const SweepRun& run = plan_.runs[index];
      MakeFolder(run.folder);
      ProgramCommand command{program, {"dtrain"}, OwnEnvironment(), LogOf(run).string()};
      for (std::string& argument : ArgumentsOf(plan_, run)) {
        command.arguments.push_back(std::move(argument));
      }
      commands.push_back(std::move(command));
    }
    started_.resize(commands.size());
    display_.Wait(begin_);
    const int signal =
        RunPrograms(commands, jobs,
                    {.started = [this](size_t command) { Started(command); },
                     .ended = [this](size_t command, int code) { Ended(command, code); },
                     .waits = [this] { ShowProgress(WallNow()); }});
    display_.Clear();
    Write();
    return signal;
  }

 private:
  void Started(size_t command) {
    started_[command] = WallNow();
    ++running_;
    log::Info("[{}/{}] {}", left_[command] + 1, plan_.runs.size(),
              plan_.runs[left_[command]].folder);
  }
  void Ended(size_t command, int code) {
    SweepRun& run = plan_.runs[left_[command]];
    --running_;
    ++ended_;
    run.exit_code = code;
    run.done = code == 0 && IsDone(plan_, run);
    const std::string after = HumanSeconds(ToSeconds(WallNow() - started_[command]));
    if (run.done) {
      log::Info("{} completed in {}", run.folder, after);
    } else if (code == kStopped || code == kInterrupted) {
      log::Info("{} stopped after {}", run.folder, after);
    } else {
      log::Warning("{} ended with exit code {} after {}{}; see {}", run.folder, code, after,
                   FirstErrorIn(LogOf(run)), LogOf(run).string());
    }
    Write();
  }
  // The output of the runs themselves is in their logs.
  void ShowProgress(Nanos now) {
    if (!display_.Due(now)) return;
    const size_t runs = plan_.runs.size(), over = runs - left_.size() + ended_;
    const double done = static_cast<double>(over) / static_cast<double>(runs);
    display_.Show(
        {{fmt::format("{} of {} over", over, Counted(static_cast<int64_t>(runs), "run")), 3},
         {"", 0, done},
         {fmt::format("{} running", running_), 2},
         {WholeSeconds(now - begin_), 1}},
        now);
  }
  void Write() const { WriteFileDurably(LinesFileOf(plan_), SweepLines(plan_)); }

  SweepPlan& plan_;
  std::vector<size_t> left_;  // indices of the plan's runs
  std::vector<Nanos> started_;
  size_t running_ = 0, ended_ = 0;
  const Nanos begin_ = WallNow();
  ProgressDisplay display_;
};

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
  const int signal = Sweep(plan).Run(options.jobs);
  if (signal != 0) {
    log::Info("the sweep was stopped; the same command resumes it");
    return kStopped;
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
