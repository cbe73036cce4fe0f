#include "framework/runtime/launch/supervisor.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/process.h"
#include "framework/core/time.h"
#include "framework/runtime/launch/child_program.h"
#include "framework/runtime/launch/stop_signal.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr Nanos kReadyWait = FromSeconds(10);  // for the records of ranks, before a stop is sent

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "dtrain-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw RunFileError(fmt::format("cannot create folder {}: {}", name, std::strerror(errno)),
                         "set TMPDIR to a folder that can be written");
    }
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

bool IsAlive(pid_t pid) { return ::kill(pid, 0) == 0 || errno != ESRCH; }

// Parent of a process; 0 when there is no such process.
pid_t ParentOf(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string word; status >> word;) {
    pid_t parent = 0;
    if (word == "PPid:" && status >> parent) return parent;
  }
  return 0;
}

// One mpirun, from start to end.
class Job {
 public:
  Job(const SupervisorOptions& options, const std::vector<std::string>& arguments)
      : ranks_(options.ranks), host_(HostName()) {
    mpirun_ = StartMpirun(MakeMpirunCommand({.ranks = options.ranks,
                                             .executable = options.executable,
                                             .arguments = arguments,
                                             .status_folder = folder_.path(),
                                             .progress_terminal = ::isatty(STDERR_FILENO) == 1}));
  }

  JobEnd Watch(const BlockedSignals& signals) {
    int status = 0;
    while (::waitpid(mpirun_, &status, WNOHANG) == 0) {
      OnSignal(signals.Wait());
      const std::vector<RankStatus> records = ReadStatusRecords(folder_.path());
      FindLost(records);
      SendStop(records);
    }
    end_.exit_status = CodeOfStatus(status);
    end_.ranks = ReadStatusRecords(folder_.path());
    return end_;
  }

 private:
  void OnSignal(int signal) {
    if (signal == 0 || signal == SIGCHLD) return;
    if (end_.stop_signal == 0) {
      end_.stop_signal = signal;
      stop_at_ = WallNow();
      log::Info("stopping: the ranks finish their step and write a checkpoint{}",
                signal == SIGINT ? " (Ctrl-C again leaves at once)" : "");
    } else if (signal != SIGUSR1 && signal != SIGUSR2) {
      end_.stop_signal = signal;
      KillAll();
    }
  }

  // A rank that vanished without a last word, unless another's failure came before.
  void FindLost(const std::vector<RankStatus>& records) {
    if (end_.first_lost) return;
    for (const RankStatus& rank : records) {
      if (rank.exit_code.value_or(0) != 0) return;
    }
    for (const RankStatus& rank : records) {
      if (rank.exit_code || rank.host != host_ || IsAlive(rank.pid)) continue;
      end_.first_lost = rank.rank;
      return;
    }
  }

  // Before a rank has its record it has no handler either, and USR1 would kill it.
  void SendStop(const std::vector<RankStatus>& records) {
    if (end_.stop_signal == 0 || stop_sent_) return;
    const bool ready = static_cast<int>(records.size()) == ranks_;
    if (!ready && WallNow() - stop_at_ < kReadyWait) return;
    ::kill(mpirun_, SIGUSR1);
    stop_sent_ = true;
  }

  // mpirun's ranks are in groups of their own and would outlive it by seconds.
  void KillAll() {
    end_.killed = true;
    for (const RankStatus& rank : ReadStatusRecords(folder_.path())) {
      if (rank.host == host_ && ParentOf(rank.pid) == mpirun_) ::kill(rank.pid, SIGKILL);
    }
    ::kill(-mpirun_, SIGKILL);
  }

  TemporaryFolder folder_;
  int ranks_;
  std::string host_;
  pid_t mpirun_ = 0;
  JobEnd end_;
  Nanos stop_at_ = 0;
  bool stop_sent_ = false;
};

void Tell(const Verdict& verdict) {
  if (verdict.line.empty()) return;
  const bool stopped = verdict.exit_code == static_cast<int>(ExitCode::kStopped);
  log::Write(stopped ? log::Level::kInfo : log::Level::kError, verdict.line);
}

}  // namespace

int Supervise(const SupervisorOptions& options) {
  const BlockedSignals signals;
  std::vector<std::string> arguments = options.arguments;
  for (int restarts = 0;; ++restarts) {
    const Verdict verdict = Judge(Job(options, arguments).Watch(signals));
    Tell(verdict);
    if (!verdict.rank_lost || restarts == options.max_restarts) return verdict.exit_code;
    log::Warning("restart {} of {}, with --resume auto", restarts + 1, options.max_restarts);
    arguments = WithResumeAuto(options.arguments);
  }
}

}  // namespace dtrain
