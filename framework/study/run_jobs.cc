#include "framework/study/run_jobs.h"

#include <csignal>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/printable.h"
#include "framework/core/process.h"
#include "framework/core/progress_display.h"
#include "framework/core/text.h"
#include "framework/core/time.h"
#include "framework/launch/child_program.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr int kStopped = static_cast<int>(ExitCode::kStopped);
// This is the exit code of a simulation that was stopped, which writes no checkpoint.
constexpr int kInterrupted = kSignalBase + SIGINT;

fs::path LogOf(const Job& job) { return fs::path(job.folder) / "log.txt"; }

// Returns ": " and the first error in the log of a job; "" if there is none.
std::string FirstErrorOf(const Job& job) {
  constexpr std::string_view kTime = "12:34:56", kError = " error ";
  std::ifstream in(LogOf(job));
  for (std::string line; std::getline(in, line);) {
    if (line.find(kError) != kTime.size()) continue;
    return ": " + Printable(line.substr(kTime.size() + kError.size()));
  }
  return "";
}

class JobRunner {
 public:
  JobRunner(const std::vector<Job>& jobs, size_t done_before,
            const std::function<bool(size_t, int, double)>& ended)
      : jobs_(jobs), done_before_(done_before), ended_event_(ended), started_(jobs.size()) {
    for (const Job& job : jobs) work_ += job.work;
  }

  int Run(int at_once) {
    const std::string program = ProgramFile().string();
    std::vector<ProgramCommand> commands;
    for (const Job& job : jobs_) {
      MakeFolder(job.folder);
      ProgramCommand command{program, {"dtrain"}, OwnEnvironment(), LogOf(job).string()};
      if (!job.launcher.empty()) {
        command.path = "/usr/bin/env";  // looks the launcher up in PATH
        command.arguments = {"env"};
        command.arguments.insert(command.arguments.end(), job.launcher.begin(), job.launcher.end());
        command.arguments.push_back(program);
      }
      command.arguments.insert(command.arguments.end(), job.arguments.begin(), job.arguments.end());
      commands.push_back(std::move(command));
    }
    display_.Wait(begin_);
    const int signal = RunPrograms(commands, at_once,
                                   {.started = [this](size_t job) { Started(job); },
                                    .ended = [this](size_t job, int code) { Ended(job, code); },
                                    .waits = [this] { ShowProgress(WallNow()); }});
    display_.Clear();
    return signal;
  }

 private:
  size_t all() const { return done_before_ + jobs_.size(); }

  void Started(size_t job) {
    started_[job] = WallNow();
    ++running_;
    log::Info("[{}/{}] {}", done_before_ + job + 1, all(), jobs_[job].name);
  }
  void Ended(size_t job, int code) {
    --running_;
    ++over_;
    work_over_ += jobs_[job].work;
    const double seconds = ToSeconds(WallNow() - started_[job]);
    const bool completed = ended_event_(job, code, seconds);
    const std::string after = HumanSeconds(seconds);
    if (completed) {
      log::Info("{} completed in {}", jobs_[job].name, after);
    } else if (code == kStopped || code == kInterrupted) {
      log::Info("{} stopped after {}", jobs_[job].name, after);
    } else {
      log::Warning("{} ended with exit code {} after {}{}; see {}", jobs_[job].name, code, after,
                   FirstErrorOf(jobs_[job]), LogOf(jobs_[job]).string());
    }
  }
  // The output of the jobs themselves is in their logs.
  void ShowProgress(Nanos now) {
    if (!display_.Due(now)) return;
    const double done = static_cast<double>(done_before_ + over_) / static_cast<double>(all());
    display_.Show({{fmt::format("{} of {} over", done_before_ + over_,
                                Counted(static_cast<int64_t>(all()), "run")),
                    3},
                   {"", 0, done},
                   {fmt::format("{} running", running_), 2},
                   {WholeSeconds(now - begin_), 1},
                   {TimeLeftAt(now), 2}},
                  now);
  }
  // Returns "1:05 left".  Jobs are started in their order, and those that run now are taken to be half done.
  std::string TimeLeftAt(Nanos now) const {
    double begun = 0;
    for (size_t job = 0; job < over_ + running_; ++job) begun += jobs_[job].work;
    const double done = work_over_ + (begun - work_over_) / 2;
    const double seconds = ToSeconds(now - begin_);
    return over_ > 0 && done > 0 ? TimeLeft(seconds / done * (work_ - done)) : "";
  }

  const std::vector<Job>& jobs_;
  const size_t done_before_;
  const std::function<bool(size_t, int, double)>& ended_event_;
  std::vector<Nanos> started_;
  double work_ = 0, work_over_ = 0;
  size_t running_ = 0, over_ = 0;
  const Nanos begin_ = WallNow();
  ProgressDisplay display_;
};

}  // namespace

int RunJobs(const std::vector<Job>& jobs, int at_once, size_t done_before,
            const std::function<bool(size_t job, int code, double seconds)>& ended) {
  if (jobs.empty()) return 0;
  return JobRunner(jobs, done_before, ended).Run(at_once);
}

}  // namespace dtrain
